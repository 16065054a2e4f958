  ;; Answers, and fails when it is told that the answer was taken.
  (func (export "cabi_post_homeostat:decider/policy@1.0.0#reconcile") (param i32) (unreachable))

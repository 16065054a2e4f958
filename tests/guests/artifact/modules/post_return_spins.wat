  ;; Answers, and does not come back when it is told that the answer was taken.
  (func (export "cabi_post_homeostat:decider/policy@1.0.0#describe") (param i32) (loop $again (br $again)))

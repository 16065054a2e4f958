  ;; Answers with a plan that lies outside its memory.
  ;; own: reconcile
  (func (export "homeostat:decider/policy@1.0.0#reconcile") (param i32) (result i32) (i32.const -8))

  ;; A trap that is no panic.
  ;; own: reconcile
  (func (export "homeostat:decider/policy@1.0.0#reconcile") (param i32) (result i32)
    (i32.div_u (i32.const 1) (i32.and (local.get 0) (i32.const 0))))

  ;; Calls itself without an end, and without a frame in its memory.
  ;; own: reconcile
  (func $deeper (param i32) (result i32)
    (i32.add (call $deeper (i32.add (local.get 0) (i32.const 1))) (local.get 0)))
  (func (export "homeostat:decider/policy@1.0.0#reconcile") (param i32) (result i32) (call $deeper (local.get 0)))

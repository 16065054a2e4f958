  ;; Writes far outside its memory.
  ;; own: reconcile
  (func (export "homeostat:decider/policy@1.0.0#reconcile") (param i32) (result i32)
    (i32.store (i32.const 0x70000000) (i32.const 1))
    (i32.const 512))

  ;; Answers with the bits of numbers that are none: sign and payload differ from processor to processor unless the host
  ;; makes them one. The three below have to come out as the same bits, or it fails.
  ;; own: reconcile
  (global $zero (mut f64) (f64.const 0))
  (func $bits (param f64) (result i64) (i64.reinterpret_f64 (local.get 0)))
  (func (export "homeostat:decider/policy@1.0.0#reconcile") (param i32) (result i32)
    (i64.store (i32.const 512) (call $bits (f64.div (global.get $zero) (global.get $zero))))
    (if (i64.ne (i64.load (i32.const 512)) (call $bits (f64.sqrt (f64.const -1)))) (then unreachable))
    (if (i64.ne (i64.load (i32.const 512)) (call $bits (f64.add (f64.const -nan:0x4000000000001) (global.get $zero))))
      (then unreachable))
    (i32.const 512))

  ;; Describes four thousand rules, each with the same sentence of sixty thousand bytes: 240 MB for the host, 128 kB here.
  ;; own: describe
  (data (i32.const 1024) "\00\08\00\00\03\00\00\00\10\08\00\00\05\00\00\00\20\08\00\00\05\00\00\00\00\00\01\00\a0\0f\00\00")
  (data (i32.const 2048) "wat")
  (data (i32.const 2064) "0.0.1")
  (data (i32.const 2080) "1.0.0")
  (func (export "homeostat:decider/policy@1.0.0#describe") (result i32)
    (local $rule i32)
    (drop (memory.grow (i32.const 2)))
    (local.set $rule (i32.const 0x10000))
    (loop $next
      (i32.store (local.get $rule) (i32.const 4096))
      (i32.store offset=4 (local.get $rule) (i32.const 60000))
      (i32.store offset=8 (local.get $rule) (i32.const 4096))
      (i32.store offset=12 (local.get $rule) (i32.const 60000))
      (local.set $rule (i32.add (local.get $rule) (i32.const 16)))
      (br_if $next (i32.lt_u (local.get $rule) (i32.const 0x1fa00))))
    (i32.const 1024))

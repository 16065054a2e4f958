  ;; Has a name that is not UTF-8.
  ;; own: describe
  (data (i32.const 1024) "\00\08\00\00\03\00\00\00\10\08\00\00\05\00\00\00\20\08\00\00\05\00\00\00\00\00\00\00\00\00\00\00")
  (data (i32.const 2048) "\ff\fe\fd")
  (data (i32.const 2064) "0.0.1")
  (data (i32.const 2080) "1.0.0")
  (func (export "homeostat:decider/policy@1.0.0#describe") (result i32) (i32.const 1024))

  ;; Answers with a column of 4294967295 entries.
  ;; own: reconcile
  (data (i32.const 600) "\00\00\00\00\00\00\00\00\00\10\00\00\ff\ff\ff\ff")
  (func (export "homeostat:decider/policy@1.0.0#reconcile") (param i32) (result i32) (i32.const 600))

  ;; Answers with a column that ends outside its memory.
  ;; own: reconcile
  (data (i32.const 600) "\00\00\00\00\00\00\00\00\f0\ff\01\00\40\00\00\00")
  (func (export "homeostat:decider/policy@1.0.0#reconcile") (param i32) (result i32) (i32.const 600))

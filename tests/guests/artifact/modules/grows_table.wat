  ;; Wants a table of ten million elements, and gives up without it.
  ;; own: reconcile
  (table $many 1 funcref)
  (func (export "homeostat:decider/policy@1.0.0#reconcile") (param i32) (result i32)
    (if (i32.eq (table.grow $many (ref.null func) (i32.const 10000000)) (i32.const -1)) (then unreachable))
    (i32.const 512))

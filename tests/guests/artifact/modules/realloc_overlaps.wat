  ;; Lets the host write all of its arguments over each other.
  ;; own: realloc
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 4096))

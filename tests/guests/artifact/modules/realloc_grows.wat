  ;; Takes all the memory there is before it gives the host an address.
  ;; own: realloc
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (loop $again (br_if $again (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
    (unreachable))

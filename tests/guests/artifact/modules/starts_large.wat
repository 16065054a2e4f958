  ;; Wants a gigabyte before it has begun.
  ;; own: memory
  (memory (export "memory") 16384)

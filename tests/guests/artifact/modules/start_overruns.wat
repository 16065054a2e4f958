  ;; Starts with bytes that lie outside its memory.
  (data (i32.const 0x7fff0000) "outside")

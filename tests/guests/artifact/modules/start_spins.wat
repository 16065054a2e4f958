  ;; Never gets as far as being instantiated.
  (func $start (loop $again (br $again)))
  (start $start)

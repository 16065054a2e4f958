  ;; Fails as soon as it is instantiated.
  (func $start (unreachable))
  (start $start)

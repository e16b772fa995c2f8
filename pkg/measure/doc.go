// Package measure says what a write means in numbers: which Updates ended and how,
// how long they took and waited, what was tried again, what stalled, what drifted.
//
// It decides purely, from the object before and after a write. A function gives
// what comes of it to observe.Measured once the write has succeeded, so that of two
// who write the same, one counts.
package measure

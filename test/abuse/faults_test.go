package abuse

import (
	"errors"
	"math/rand/v2"
)

// errCut is what a function that is cut off gets for an answer, and for all that it asks from then on.
var errCut = errors.New("cut off, as in a crash")

// mode is where a function is cut off.
type mode int

const (
	// none lets a write pass.
	none mode = iota
	// before cuts off before the write is sent.
	before
	// after cuts off once the write was done, before the answer.
	after
	// stall holds the write back until the scenario lets it go on.
	stall
)

func (m mode) String() string { return [...]string{"none", "before", "after", "stall"}[m] }

// faults say what is done to a run.
type faults interface {
	// next is asked at each write to the API server ("write") and each event to the Broker ("send").
	next(series string, n int) mode
	// copies is how often an event is delivered.
	copies() int
	// pick is which of n things comes next; 0 is the oldest.
	pick(n int) int
	// patient says whether the pods move only when no event is left.
	patient() bool
}

// clean does nothing to a run.
type clean struct{}

func (clean) next(string, int) mode { return none }
func (clean) copies() int           { return 1 }
func (clean) pick(int) int          { return 0 }
func (clean) patient() bool         { return true }

// cut cuts off one write.
type cut struct {
	clean

	series string
	at     int
	mode   mode
}

func (c *cut) next(series string, n int) mode {
	if series == c.series && n == c.at {
		return c.mode
	}
	return none
}

// twice delivers each event twice.
type twice struct{ clean }

func (twice) copies() int { return 2 }

// chaos delivers events in any order, not at all, or up to three times, and cuts off a write now and then.
type chaos struct{ rand *rand.Rand }

func (c *chaos) next(string, int) mode {
	switch c.rand.IntN(20) {
	case 0:
		return before
	case 1:
		return after
	default:
		return none
	}
}

func (c *chaos) copies() int {
	switch c.rand.IntN(10) {
	case 0, 1:
		return 0
	case 2:
		return 2
	case 3:
		return 3
	default:
		return 1
	}
}

func (c *chaos) pick(n int) int { return c.rand.IntN(n) }
func (c *chaos) patient() bool  { return c.rand.IntN(3) != 0 }

package sweep

import (
	"testing"
	"time"
)

func TestASweepCoversWhatWasToldBeforeItBegan(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		told, began time.Time
		want        bool
	}{
		"Told well before":               {began.Add(-2 * time.Second), began, true},
		"Told after":                     {began.Add(time.Second), began, false},
		"Clocks may differ by as much":   {began.Add(-time.Second / 2), began, false},
		"An event that does not say so":  {time.Time{}, began, false},
		"No sweep yet":                   {began, time.Time{}, false},
		"Neither time nor sweep is none": {time.Time{}, time.Time{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := covered(c.told, c.began); got != c.want {
				t.Errorf("covered = %v", got)
			}
		})
	}
}

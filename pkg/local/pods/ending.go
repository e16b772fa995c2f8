package pods

import "time"

// endGrace is how long processes have to end by themselves when the Runner
// ends: enough for a Pulumi CLI to release its lock.
const endGrace = 5 * time.Second

// awaitEnd ends the pod's processes before their time if something asks for it:
// the pod's deletion, its deadline, its disappearance, or the Runner's end.
func (s *sandbox) awaitEnd() {
	var end ending
	overdue, gone := s.deadline(), s.alive.Done()
	for {
		select {
		case <-s.idle:
			return
		case <-end.kill:
			s.kill()
			return
		case <-gone:
			if s.gone() {
				s.kill()
				return
			}
			gone = nil
			end.within(endGrace)
		case <-overdue:
			s.mu.Lock()
			s.overdue = true
			s.mu.Unlock()
			end.within(seconds(s.current().Spec.TerminationGracePeriodSeconds))
		case <-s.news:
			pod := s.current()
			if pod.DeletionTimestamp == nil {
				continue
			}
			end.within(seconds(pod.DeletionGracePeriodSeconds))
		}
		s.ask()
	}
}

// deadline fires when activeDeadlineSeconds have passed; nil never does.
func (s *sandbox) deadline() <-chan time.Time {
	if active := s.current().Spec.ActiveDeadlineSeconds; active != nil {
		return time.After(seconds(active))
	}
	return nil
}

// ending is when to kill. A grace counts from when it is first heard of, and a
// shorter one that is heard of later still holds.
type ending struct {
	at   time.Time
	kill <-chan time.Time
}

func (e *ending) within(grace time.Duration) {
	at := time.Now().Add(grace)
	if e.kill == nil || at.Before(e.at) {
		e.at, e.kill = at, time.After(grace)
	}
}

func seconds(n *int64) time.Duration {
	if n == nil {
		return 0
	}
	return time.Duration(*n) * time.Second
}

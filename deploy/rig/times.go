package rig

import "time"

// Times are the settings that a world runs with and the spans that its faults last.
type Times struct {
	Name string

	Beat     time.Duration // between two beats of an instance
	Stale    time.Duration // stream time after which a silent instance is stale (three beats)
	Pulse    time.Duration // between two pulses of a partition's owner
	Session  time.Duration // session timeout of the listeners' consumer group
	Poll     time.Duration // confgen's poll of the registry
	Lease    time.Duration // confgen's lease
	Commit   time.Duration // confgen's repeated commit
	Unproven time.Duration // time limit of the mass-eviction guard
	Hold     time.Duration // what a leader waits after a restored database
	Agent    time.Duration // between two beats of a proxy

	Outage  time.Duration // how long a part is away in an outage test
	Cut     time.Duration // how long a part of the instances is cut off
	Steady  time.Duration // how long steady beats are watched
	Recover time.Duration // within which all is normal again after an outage
	Slack   time.Duration // what a limit is widened by for a busy machine
}

// Scaled are production times divided by ten where the software scales with them. Recover and Slack are
// about the machine rather than about settings, so they don't shrink.
func Scaled() Times {
	return Times{
		Name: "scaled",
		Beat: time.Second, Stale: 3 * time.Second, Pulse: 100 * time.Millisecond,
		Session: 1500 * time.Millisecond, Poll: 100 * time.Millisecond, Lease: 800 * time.Millisecond,
		Commit: time.Second, Unproven: 30 * time.Second, Hold: 3 * time.Second, Agent: time.Second,
		Outage: 9 * time.Second, Cut: 8 * time.Second, Steady: 18 * time.Second,
		Recover: 15 * time.Second, Slack: 2 * time.Second,
	}
}

// Full are the production times of the design.
func Full() Times {
	return Times{
		Name: "full",
		Beat: 10 * time.Second, Stale: 30 * time.Second, Pulse: time.Second,
		Session: 6 * time.Second, Poll: 500 * time.Millisecond, Lease: 3 * time.Second,
		Commit: 10 * time.Second, Unproven: 5 * time.Minute, Hold: 30 * time.Second, Agent: 10 * time.Second,
		Outage: 90 * time.Second, Cut: 60 * time.Second, Steady: 3 * time.Minute,
		Recover: 15 * time.Second, Slack: 2 * time.Second,
	}
}

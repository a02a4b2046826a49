// SPDX-License-Identifier: Apache-2.0

// Package wholewrite decides whether pools of a load balancer may be written together: by one
// PUT of the load balancer, or by PUTs of their own that overlap. Azure takes what such writes do
// to pools, or it ignores, refuses or takes back what they do, and nobody has recorded which. So
// each is tried once, where nothing is lost by it, and what was seen is kept.
package wholewrite

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/behaviour"
)

// Setting is what azure.json says of it.
type Setting string

// The settings. Auto is the default.
const (
	Auto   Setting = "auto"
	Always Setting = "true"
	Never  Setting = "false"
)

// Settings are those that there are.
func Settings() []Setting { return []Setting{Auto, Always, Never} }

// Valid reports whether it is one of them.
func (s Setting) Valid() bool { return slices.Contains(Settings(), s) }

// UnmarshalJSON takes true and false as words, too, and words without regard to case.
func (s *Setting) UnmarshalJSON(text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	switch v := value.(type) {
	case bool:
		*s = Never
		if v {
			*s = Always
		}
	case string:
		*s = Setting(v)
		if word := Setting(strings.ToLower(v)); word.Valid() {
			*s = word
		}
	default:
		return errors.New("want auto, true or false")
	}
	return nil
}

// MarshalJSON writes true and false as such, for those who know no other value.
func (s Setting) MarshalJSON() ([]byte, error) {
	switch s {
	case Always:
		return []byte("true"), nil
	case Never:
		return []byte("false"), nil
	case Auto:
	}
	return json.Marshal(string(s))
}

// Change is what a write does to a pool, or how it is sent: each is a question of its own, and one
// answer says nothing of another.
type Change string

// The changes. Overlapping is a write of a pool that is sent while another of its load balancer
// runs, whatever it changes; its answers are those of behaviour.Behaviour.Overlap.
const (
	Addresses   Change = "addresses"
	AdminStates Change = "admin states"
	Overlapping Change = "overlapping"
)

// Changes are those that a write of a whole load balancer makes.
func Changes() []Change { return []Change{Addresses, AdminStates} }

// Questions are all.
func Questions() []Change { return []Change{Addresses, AdminStates, Overlapping} }

func (c Change) other() Change {
	if c == Addresses {
		return AdminStates
	}
	return Addresses
}

// Lifetime is how long a verdict holds after Azure was last seen to keep to it, and how long a
// trial without a verdict counts. What is used is seen: so it ends where nothing was written
// together for as long, and Azure may have changed.
const Lifetime = 30 * 24 * time.Hour

const (
	// mostTrials bounds the trials that come to no verdict, because the answer was lost, the
	// write was refused, or somebody else wrote in between.
	mostTrials = 3
	// trialsApart is how long it takes from one of these to the next.
	trialsApart = time.Hour
)

// Known is all that is known of a subscription.
type Known struct {
	// Setting is that of whole writes, and Pipelined that of overlapping ones.
	Setting, Pipelined Setting
	// Version is that of this Weir.
	Version string
	// Seen is what this process has seen itself.
	Seen behaviour.Behaviour
	// Probed is what a file of the operator's says.
	Probed behaviour.Behaviour
	// Record is what is on record; Unread says why it is not known, and is empty if it is.
	Record Record
	Unread string
}

// Leave says whether pools may be written together.
type Leave int

// The answers.
const (
	No Leave = iota
	// Try is for once: nothing is believed that is not read back.
	Try
	Yes
)

// Decision is an answer, with its reason for people.
type Decision struct {
	Leave Leave
	Why   string
}

// May decides of one change. unrest says, for people, why now is no moment to try; empty if it is
// one. What was seen here counts more than what a file says, and that more than what is on
// record. A setting of true needs no verdict, and is not believed against what was seen of either
// change.
func (k Known) May(c Change, now time.Time, unrest string) Decision {
	seen, on, setting := Answer(k.Seen, c), k.Record.Of(c), k.setting(c)
	if seen != "" && !Takes(seen) && !on.At.IsZero() && !near(on.At, now, Lifetime) {
		seen = "" // it was long ago: this process may ask again, too
	}
	switch {
	case setting == Never:
		return Decision{No, offBy(c)}
	case seen != "":
		return decided(c, seen, "was seen by this process to %s them")
	case setting == Always && c != Overlapping && Answer(k.Seen, c.other()) == behaviour.Ignored:
		return Decision{No, "Azure was seen by this process to ignore " + string(c.other())}
	case setting == Always:
		return Decision{Yes, onBy(c)}
	case Answer(k.Probed, c) != "":
		return decided(c, Answer(k.Probed, c), "was found to %s them, by --azure-behaviour")
	case k.Unread != "":
		return Decision{No, "what is on record could not be read yet: " + k.Unread}
	case on.holds(k.Record.Version, k.Version, now):
		return decided(c, on.Answer, "was seen to %s them, last on "+on.At.UTC().Format(time.DateOnly))
	}
	return k.mayTry(on, now, unrest)
}

func decided(c Change, a behaviour.Answer, how string) Decision {
	switch {
	case Takes(a):
		return Decision{Yes, "Azure " + fmt.Sprintf(how, "take")}
	case c == Overlapping:
		return Decision{No, "Azure " + fmt.Sprintf(how, "refuse or take back") + " (" + string(a) + ")"}
	}
	return Decision{No, "Azure " + fmt.Sprintf(how, "ignore")}
}

// Takes reports whether an answer says that Azure takes what is asked for.
func Takes(a behaviour.Answer) bool { return a == behaviour.Taken || a == behaviour.Supersede }

// setting is what the operator wants of a change; none is never for overlapping writes.
func (k Known) setting(c Change) Setting {
	switch {
	case c != Overlapping:
		return k.Setting
	case k.Pipelined == "":
		return Never
	}
	return k.Pipelined
}

func offBy(c Change) string {
	if c == Overlapping {
		return "by loadBalancerWriteStrategy no writes overlap"
	}
	return "enableLoadBalancerWholeWrites is false"
}

func onBy(c Change) string {
	if c == Overlapping {
		return "loadBalancerWriteStrategy is pipelined"
	}
	return "enableLoadBalancerWholeWrites is true"
}

// mayTry decides where there is no verdict.
func (k Known) mayTry(on Verdict, now time.Time, unrest string) Decision {
	trials := on.trials(k.Record.Version, k.Version, now)
	switch again := on.TriedAt.Add(trialsApart); {
	case trials >= mostTrials:
		return Decision{No, fmt.Sprintf("tried %d times, and nothing was learned: the next trial is after %s, or by another version of Weir",
			trials, on.TriedAt.Add(Lifetime).UTC().Format(time.DateOnly))}
	case trials > 0 && now.Before(again):
		return Decision{No, "tried, and nothing was learned: the next trial is after " + again.UTC().Format(time.RFC3339)}
	case unrest != "":
		return Decision{No, "not tried yet: " + unrest}
	}
	return Decision{Try, "not tried yet"}
}

// Verdict is what there is to say of a change: what Azure answered in words, for a metric.
func (k Known) Verdict(c Change, now time.Time) string {
	setting := k.setting(c)
	d := k.May(c, now, "nobody asks")
	answer := k.answer(c, now)
	switch {
	case setting == Never:
		return "off"
	case d.Leave == Yes && Answer(k.Seen, c) == "" && setting == Always:
		return "on"
	case answer != "":
		return string(answer)
	case setting == Always && d.Leave == No: // by what was seen of the other change
		return string(behaviour.Ignored)
	}
	return "unknown"
}

// answer is what is known, whoever has found it out.
func (k Known) answer(c Change, now time.Time) behaviour.Answer {
	on := k.Record.Of(c)
	switch {
	case Answer(k.Seen, c) != "":
		return Answer(k.Seen, c)
	case Answer(k.Probed, c) != "":
		return Answer(k.Probed, c)
	case on.holds(k.Record.Version, k.Version, now):
		return on.Answer
	}
	return ""
}

// Answer is what a behaviour says to a change; empty for what is no answer to it.
func Answer(b behaviour.Behaviour, c Change) behaviour.Answer {
	a := b.WholeWriteAddresses
	switch c {
	case AdminStates:
		a = b.WholeWriteAdminStates
	case Overlapping:
		return b.Overlap
	case Addresses:
	}
	if a != behaviour.Taken && a != behaviour.Ignored {
		return ""
	}
	return a
}

// With returns what was seen, with an answer to one change.
func With(b behaviour.Behaviour, c Change, a behaviour.Answer) behaviour.Behaviour {
	switch c {
	case Addresses:
		b.WholeWriteAddresses = a
	case AdminStates:
		b.WholeWriteAdminStates = a
	case Overlapping:
		b.Overlap = a
	}
	return b
}

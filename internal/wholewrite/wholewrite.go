// SPDX-License-Identifier: Apache-2.0

// Package wholewrite decides whether pools of a load balancer may be written together: by one PUT
// of the load balancer, or by overlapping PUTs of pools. Whether Azure applies, ignores, rejects or
// rolls back such writes is undocumented. So each is tried once, where nothing can be lost, and the
// result persisted.
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

// Setting is from azure.json.
type Setting string

// Auto is the default.
const (
	Auto   Setting = "auto"
	Always Setting = "true"
	Never  Setting = "false"
)

// Settings returns all settings.
func Settings() []Setting { return []Setting{Auto, Always, Never} }

// Valid reports whether the setting is known.
func (s Setting) Valid() bool { return slices.Contains(Settings(), s) }

// UnmarshalJSON also accepts booleans and ignores case.
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

// MarshalJSON uses booleans where possible, for older readers.
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

// Change is what a write does, or how it is sent. Each has its own verdict.
type Change string

// Overlapping is a pool write during another of its load balancer; its answers are those of
// behaviour.Behaviour.Overlap.
const (
	Addresses   Change = "addresses"
	AdminStates Change = "admin states"
	Overlapping Change = "overlapping"
)

// Changes are those of a batched update.
func Changes() []Change { return []Change{Addresses, AdminStates} }

// Questions returns all changes.
func Questions() []Change { return []Change{Addresses, AdminStates, Overlapping} }

func (c Change) other() Change {
	if c == Addresses {
		return AdminStates
	}
	return Addresses
}

// Lifetime is how long a verdict lasts after its last confirmation, and an inconclusive trial
// counts. Every use confirms it.
const Lifetime = 30 * 24 * time.Hour

const (
	// mostTrials bounds inconclusive trials.
	mostTrials  = 3
	trialsApart = time.Hour
)

// Known is all that is known of a subscription.
type Known struct {
	// Settings for batched and for overlapping updates.
	Setting, Pipelined Setting
	Version            string
	// Seen is observed by this process.
	Seen behaviour.Behaviour
	// Probed is from --azure-behaviour.
	Probed behaviour.Behaviour
	// Record is persisted; the error is why it is unknown.
	Record Record
	Unread string
}

// Leave is a permission to write pools together.
type Leave int

// The permissions.
const (
	No Leave = iota
	// Try permits one trial.
	Try
	Yes
)

// Decision is a permission with its reason.
type Decision struct {
	Leave Leave
	Why   string
}

// May decides about a change. blockedReason is why a trial must not run, or empty. This process's
// observations override the file, and the file overrides the record. Always needs none of them, but
// observations may override it.
func (k Known) May(c Change, now time.Time, blockedReason string) Decision {
	seen, recorded, setting := Answer(k.Seen, c), k.Record.Of(c), k.setting(c)
	if seen != "" && !Takes(seen) && !recorded.At.IsZero() && !near(recorded.At, now, Lifetime) {
		seen = "" // outdated: may be tried again
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
	case recorded.holds(k.Record.Version, k.Version, now):
		return decided(c, recorded.Answer, "was seen to %s them, last on "+recorded.At.UTC().Format(time.DateOnly))
	}
	return k.mayTry(recorded, now, blockedReason)
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

// Takes reports support.
func Takes(a behaviour.Answer) bool { return a == behaviour.Taken || a == behaviour.Supersede }

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

func (k Known) mayTry(recorded Verdict, now time.Time, blockedReason string) Decision {
	trials := recorded.trials(k.Record.Version, k.Version, now)
	switch again := recorded.TriedAt.Add(trialsApart); {
	case trials >= mostTrials:
		return Decision{No, fmt.Sprintf("tried %d times, and nothing was learned: the next trial is after %s, or by another version of Weir",
			trials, recorded.TriedAt.Add(Lifetime).UTC().Format(time.DateOnly))}
	case trials > 0 && now.Before(again):
		return Decision{No, "tried, and nothing was learned: the next trial is after " + again.UTC().Format(time.RFC3339)}
	case blockedReason != "":
		return Decision{No, "not tried yet: " + blockedReason}
	}
	return Decision{Try, "not tried yet"}
}

// Verdict is a change's state, as a metric label.
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
	case setting == Always && d.Leave == No: // because of the other change
		return string(behaviour.Ignored)
	}
	return "unknown"
}

func (k Known) answer(c Change, now time.Time) behaviour.Answer {
	recorded := k.Record.Of(c)
	switch {
	case Answer(k.Seen, c) != "":
		return Answer(k.Seen, c)
	case Answer(k.Probed, c) != "":
		return Answer(k.Probed, c)
	case recorded.holds(k.Record.Version, k.Version, now):
		return recorded.Answer
	}
	return ""
}

// Answer returns b's answer to a change, or empty.
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

// With sets the answer to a change.
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

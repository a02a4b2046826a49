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

// ListSettings returns all settings.
func ListSettings() []Setting { return []Setting{Auto, Always, Never} }

// IsValid reports whether the setting is known.
func (s Setting) IsValid() bool { return slices.Contains(ListSettings(), s) }

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
		if word := Setting(strings.ToLower(v)); word.IsValid() {
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

// Overlap is a pool write during another of its load balancer; its answers are those of
// behaviour.Behaviour.Overlap.
const (
	Addresses   Change = "addresses"
	AdminStates Change = "admin states"
	Overlap     Change = "overlapping"
)

// BatchChanges are those of a batched update.
func BatchChanges() []Change { return []Change{Addresses, AdminStates} }

// AllChanges returns all changes.
func AllChanges() []Change { return []Change{Addresses, AdminStates, Overlap} }

func (c Change) otherChange() Change {
	if c == Addresses {
		return AdminStates
	}
	return Addresses
}

// ResultTTL is how long a verdict lasts after its last confirmation, and an inconclusive trial
// counts. Every use confirms it.
const ResultTTL = 30 * 24 * time.Hour

const (
	// maxAttempts bounds inconclusive trials.
	maxAttempts     = 3
	attemptInterval = time.Hour
)

// State is all that is known of a subscription.
type State struct {
	// Settings for batched and for overlapping updates.
	BatchSetting, OverlapSetting Setting
	Version                      string
	// Observed is observed by this process.
	Observed behaviour.Behavior
	// FromFile is from --azure-behaviour.
	FromFile behaviour.Behavior
	// Record is persisted; the error is why it is unknown.
	Record      Record
	RecordError string
}

// Permission is a permission to write pools together.
type Permission int

// The permissions.
const (
	Denied Permission = iota
	// Once permits one trial.
	Once
	Allowed
)

// Decision is a permission with its reason.
type Decision struct {
	Permission Permission
	Reason     string
}

// DecideChange decides about a change. blockedReason is why a trial must not run, or empty. This process's
// observations override the file, and the file overrides the record. Always needs none of them, but
// observations may override it.
func (k State) DecideChange(c Change, now time.Time, blockedReason string) Decision {
	seen, recorded, setting := ResultIn(k.Observed, c), k.Record.ResultOf(c), k.settingOf(c)
	if seen != "" && !IsSupported(seen) && !recorded.At.IsZero() && !isClose(recorded.At, now, ResultTTL) {
		seen = "" // outdated: may be tried again
	}
	switch {
	case setting == Never:
		return Decision{Denied, disabledReason(c)}
	case seen != "":
		return newDecision(c, seen, "was seen by this process to %s them")
	case setting == Always && c != Overlap && ResultIn(k.Observed, c.otherChange()) == behaviour.Ignored:
		return Decision{Denied, "Azure was seen by this process to ignore " + string(c.otherChange())}
	case setting == Always:
		return Decision{Allowed, enabledReason(c)}
	case ResultIn(k.FromFile, c) != "":
		return newDecision(c, ResultIn(k.FromFile, c), "was found to %s them, by --azure-behaviour")
	case k.RecordError != "":
		return Decision{Denied, "what is on record could not be read yet: " + k.RecordError}
	case recorded.isValid(k.Record.Version, k.Version, now):
		return newDecision(c, recorded.Answer, "was seen to %s them, last on "+recorded.At.UTC().Format(time.DateOnly))
	}
	return k.decideAttempt(recorded, now, blockedReason)
}

func newDecision(c Change, a behaviour.Result, how string) Decision {
	switch {
	case IsSupported(a):
		return Decision{Allowed, "Azure " + fmt.Sprintf(how, "take")}
	case c == Overlap:
		return Decision{Denied, "Azure " + fmt.Sprintf(how, "refuse or take back") + " (" + string(a) + ")"}
	}
	return Decision{Denied, "Azure " + fmt.Sprintf(how, "ignore")}
}

// IsSupported reports support.
func IsSupported(a behaviour.Result) bool { return a == behaviour.Accepted || a == behaviour.Supersede }

func (k State) settingOf(c Change) Setting {
	switch {
	case c != Overlap:
		return k.BatchSetting
	case k.OverlapSetting == "":
		return Never
	}
	return k.OverlapSetting
}

func disabledReason(c Change) string {
	if c == Overlap {
		return "by loadBalancerWriteStrategy no writes overlap"
	}
	return "enableLoadBalancerWholeWrites is false"
}

func enabledReason(c Change) string {
	if c == Overlap {
		return "loadBalancerWriteStrategy is pipelined"
	}
	return "enableLoadBalancerWholeWrites is true"
}

func (k State) decideAttempt(recorded Result, now time.Time, blockedReason string) Decision {
	trials := recorded.countAttempts(k.Record.Version, k.Version, now)
	switch again := recorded.LastAttempt.Add(attemptInterval); {
	case trials >= maxAttempts:
		return Decision{Denied, fmt.Sprintf("tried %d times, and nothing was learned: the next trial is after %s, or by another version of Weir",
			trials, recorded.LastAttempt.Add(ResultTTL).UTC().Format(time.DateOnly))}
	case trials > 0 && now.Before(again):
		return Decision{Denied, "tried, and nothing was learned: the next trial is after " + again.UTC().Format(time.RFC3339)}
	case blockedReason != "":
		return Decision{Denied, "not tried yet: " + blockedReason}
	}
	return Decision{Once, "not tried yet"}
}

// StateLabel is a change's state, as a metric label.
func (k State) StateLabel(c Change, now time.Time) string {
	setting := k.settingOf(c)
	d := k.DecideChange(c, now, "nobody asks")
	answer := k.knownResult(c, now)
	switch {
	case setting == Never:
		return "off"
	case d.Permission == Allowed && ResultIn(k.Observed, c) == "" && setting == Always:
		return "on"
	case answer != "":
		return string(answer)
	case setting == Always && d.Permission == Denied: // because of the other change
		return string(behaviour.Ignored)
	}
	return "unknown"
}

func (k State) knownResult(c Change, now time.Time) behaviour.Result {
	recorded := k.Record.ResultOf(c)
	switch {
	case ResultIn(k.Observed, c) != "":
		return ResultIn(k.Observed, c)
	case ResultIn(k.FromFile, c) != "":
		return ResultIn(k.FromFile, c)
	case recorded.isValid(k.Record.Version, k.Version, now):
		return recorded.Answer
	}
	return ""
}

// ResultIn returns b's answer to a change, or empty.
func ResultIn(b behaviour.Behavior, c Change) behaviour.Result {
	a := b.UpdateAddresses
	switch c {
	case AdminStates:
		a = b.UpdateAdminStates
	case Overlap:
		return b.Overlap
	case Addresses:
	}
	if a != behaviour.Accepted && a != behaviour.Ignored {
		return ""
	}
	return a
}

// SetResult sets the answer to a change.
func SetResult(b behaviour.Behavior, c Change, a behaviour.Result) behaviour.Behavior {
	switch c {
	case Addresses:
		b.UpdateAddresses = a
	case AdminStates:
		b.UpdateAdminStates = a
	case Overlap:
		b.Overlap = a
	}
	return b
}

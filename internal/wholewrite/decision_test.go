// SPDX-License-Identifier: Apache-2.0

package wholewrite_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/wholewrite"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

const (
	version = "v1.2.0"
	day     = 24 * time.Hour
)

// whole is a behaviour with an answer for addresses.
func whole(a behaviour.Result) behaviour.Behavior {
	return behaviour.Behavior{UpdateAddresses: a}
}

// said is a record of this version with the given age.
func said(a behaviour.Result, ago time.Duration) wholewrite.Record {
	return wholewrite.Record{Version: version, Addresses: wholewrite.Result{Answer: a, At: now.Add(-ago), Attempts: 1, LastAttempt: now.Add(-ago)}}
}

// tried is a record of inconclusive trials.
func tried(times int, ago time.Duration) wholewrite.Record {
	return wholewrite.Record{Version: version, Addresses: wholewrite.Result{Attempts: times, LastAttempt: now.Add(-ago)}}
}

func TestWhetherPoolsMayBeWrittenTogether(t *testing.T) {
	other := said(behaviour.Accepted, time.Minute)
	other.Version = "v1.1.0"
	spent := tried(3, 2*time.Hour)
	spent.Version = "v1.1.0"
	for _, tt := range []struct {
		about   string
		k       wholewrite.State
		unrest  string
		want    wholewrite.Permission
		why     string
		verdict string
	}{
		{"nothing is known, and all is calm", wholewrite.State{}, "", wholewrite.Once, "not tried yet", "unknown"},
		{"nothing is known, and a node drains", wholewrite.State{}, "nodes drain", wholewrite.Denied, "not tried yet: nodes drain", "unknown"},
		{"seen here to be taken, whatever goes on", wholewrite.State{Observed: whole(behaviour.Accepted)}, "nodes drain", wholewrite.Allowed, "Azure was seen by this process to take them", "taken"},
		{"seen here to be ignored", wholewrite.State{Observed: whole(behaviour.Ignored)}, "", wholewrite.Denied, "Azure was seen by this process to ignore them", "ignored"},
		{"on record as taken", wholewrite.State{Record: said(behaviour.Accepted, day)}, "nodes drain", wholewrite.Allowed, "Azure was seen to take them, last on 2026-11-21", "taken"},
		{"on record as ignored", wholewrite.State{Record: said(behaviour.Ignored, day)}, "", wholewrite.Denied, "Azure was seen to ignore them, last on 2026-11-21", "ignored"},
		{"the other change says nothing", wholewrite.State{
			Observed: behaviour.Behavior{UpdateAdminStates: behaviour.Accepted},
			Record:   wholewrite.Record{Version: version, AdminStates: wholewrite.Result{Answer: behaviour.Accepted, At: now}},
		}, "nodes drain", wholewrite.Denied, "not tried yet: nodes drain", "unknown"},

		{"a verdict of 29 days", wholewrite.State{Record: said(behaviour.Ignored, 29*day)}, "", wholewrite.Denied, "Azure was seen to ignore them", "ignored"},
		{"a verdict of 30 days has ended", wholewrite.State{Record: said(behaviour.Ignored, 30*day)}, "", wholewrite.Once, "not tried yet", "unknown"},
		{"so has one that was taken", wholewrite.State{Record: said(behaviour.Accepted, 30*day)}, "nodes drain", wholewrite.Denied, "not tried yet: nodes drain", "unknown"},
		{"one of another version", wholewrite.State{Record: other}, "", wholewrite.Once, "not tried yet", "unknown"},
		{"one of the far future, which a clock has made", wholewrite.State{Record: said(behaviour.Accepted, -40*day)}, "nodes drain", wholewrite.Denied, "not tried yet", "unknown"},
		{"one that nobody can have written", wholewrite.State{Record: said("perhaps", day)}, "nodes drain", wholewrite.Denied, "not tried yet", "unknown"},

		{"a trial that came to nothing a moment ago", wholewrite.State{Record: tried(1, time.Minute)}, "", wholewrite.Denied, "tried, and nothing was learned: the next trial is after 2026-11-22T12:59:00Z", "unknown"},
		{"an hour ago", wholewrite.State{Record: tried(1, time.Hour)}, "", wholewrite.Once, "not tried yet", "unknown"},
		{"the second", wholewrite.State{Record: tried(2, time.Hour)}, "", wholewrite.Once, "not tried yet", "unknown"},
		{"the third was the last", wholewrite.State{Record: tried(3, 2*time.Hour)}, "", wholewrite.Denied, "tried 3 times, and nothing was learned: the next trial is after 2026-12-22, or by another version of Weir", "unknown"},
		{"for 30 days", wholewrite.State{Record: tried(3, 30*day)}, "", wholewrite.Once, "not tried yet", "unknown"},
		{"or until another version", wholewrite.State{Record: spent}, "", wholewrite.Once, "not tried yet", "unknown"},

		{"the record is not read yet", wholewrite.State{RecordError: "no answer"}, "", wholewrite.Denied, "what is on record could not be read yet: no answer", "unknown"},
		{"but a file speaks", wholewrite.State{RecordError: "no answer", FromFile: whole(behaviour.Accepted)}, "", wholewrite.Allowed, "Azure was found to take them, by --azure-behaviour", "taken"},
		{"a file counts more than the record", wholewrite.State{FromFile: whole(behaviour.Ignored), Record: said(behaviour.Accepted, day)}, "", wholewrite.Denied, "Azure was found to ignore them, by --azure-behaviour", "ignored"},
		{"what was seen here more than a file", wholewrite.State{FromFile: whole(behaviour.Accepted), Observed: whole(behaviour.Ignored)}, "", wholewrite.Denied, "Azure was seen by this process to ignore them", "ignored"},
		{"a file that does not say", wholewrite.State{FromFile: behaviour.Behavior{Overlap: behaviour.Lock}}, "", wholewrite.Once, "not tried yet", "unknown"},

		{"true asks nobody", wholewrite.State{BatchSetting: wholewrite.Always, Record: said(behaviour.Ignored, day), FromFile: whole(behaviour.Ignored), RecordError: "no answer"}, "nodes drain", wholewrite.Allowed, "enableLoadBalancerWholeWrites is true", "on"},
		{"but believes what it sees", wholewrite.State{BatchSetting: wholewrite.Always, Observed: whole(behaviour.Ignored)}, "", wholewrite.Denied, "Azure was seen by this process to ignore them", "ignored"},
		{"of either", wholewrite.State{BatchSetting: wholewrite.Always, Observed: behaviour.Behavior{UpdateAdminStates: behaviour.Ignored}}, "", wholewrite.Denied, "Azure was seen by this process to ignore admin states", "ignored"},
		{"false is false", wholewrite.State{BatchSetting: wholewrite.Never, Observed: whole(behaviour.Accepted), Record: said(behaviour.Accepted, day)}, "", wholewrite.Denied, "enableLoadBalancerWholeWrites is false", "off"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			if tt.k.BatchSetting == "" {
				tt.k.BatchSetting = wholewrite.Auto
			}
			tt.k.Version = version
			got := tt.k.DecideChange(wholewrite.Addresses, now, tt.unrest)
			if got.Permission != tt.want || !strings.HasPrefix(got.Reason, tt.why) {
				t.Errorf("got %+v, want %d: %s", got, tt.want, tt.why)
			}
			if v := tt.k.StateLabel(wholewrite.Addresses, now); v != tt.verdict {
				t.Errorf("the metric says %q, want %q", v, tt.verdict)
			}
		})
	}
}

// A trial counts from before it starts, whatever its result; a confirmed verdict is extended.
func TestWhatIsPutOnRecord(t *testing.T) {
	known := func(r wholewrite.Record, c wholewrite.Change, at time.Time) wholewrite.Permission {
		return wholewrite.State{BatchSetting: wholewrite.Auto, Version: version, Record: r}.DecideChange(c, at, "").Permission
	}
	expect := func(what string, got, want wholewrite.Permission) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %d, want %d", what, got, want)
		}
	}
	r := said(behaviour.Accepted, time.Hour)
	r.Version = "v1.1.0"
	r = r.WithAttempt(wholewrite.Addresses, version, now)
	if r.Version != version || r.Addresses.Attempts != 1 || r.Addresses.Answer != "" {
		t.Errorf("the first trial of a version: %+v", r)
	}
	expect("right after it", known(r, wholewrite.Addresses, now), wholewrite.Denied)
	expect("of admin states nothing was tried", known(r, wholewrite.AdminStates, now), wholewrite.Once)
	r = r.WithAttempt(wholewrite.AdminStates, version, now)
	r, fresh := r.UpdateResult(wholewrite.Addresses, behaviour.Accepted, version, now.Add(time.Minute))
	expect("the verdict", known(r, wholewrite.Addresses, now.Add(time.Hour)), wholewrite.Allowed)
	expect("that of admin states is still to come", known(r, wholewrite.AdminStates, now.Add(time.Minute)), wholewrite.Denied)
	again, stale := r.UpdateResult(wholewrite.Addresses, behaviour.Accepted, version, now.Add(2*time.Hour))
	if !fresh || stale {
		t.Errorf("the first time %t, the same day %t", fresh, stale)
	}
	later, fresh := again.UpdateResult(wholewrite.Addresses, behaviour.Accepted, version, now.Add(20*day))
	expect("seen again on the 20th day it holds on the 49th", known(later, wholewrite.Addresses, now.Add(49*day)), wholewrite.Allowed)
	other, changed := later.UpdateResult(wholewrite.Addresses, behaviour.Ignored, version, now.Add(20*day))
	expect("Azure does otherwise", known(other, wholewrite.Addresses, now.Add(20*day)), wholewrite.Denied)
	if !fresh || !changed {
		t.Errorf("the 20th day %t, another answer %t", fresh, changed)
	}
	if third := r.WithAttempt(wholewrite.AdminStates, version, now.Add(day)).WithAttempt(wholewrite.AdminStates, version, now.Add(40*day)); third.AdminStates.Attempts != 1 {
		t.Errorf("trials of 39 days ago still count: %+v", third.AdminStates)
	}
}

func TestTheRecordIsText(t *testing.T) {
	all := map[string]wholewrite.Record{
		"s1": {Version: version, Addresses: wholewrite.Result{Answer: behaviour.Ignored, At: now, Attempts: 1, LastAttempt: now.Add(-time.Minute)}},
		"s2": {Version: "v1.1.0", Addresses: wholewrite.Result{Answer: behaviour.Accepted, At: now}},
	}
	const want = `{
  "s1": {
    "version": "v1.2.0",
    "addresses": {
      "answer": "ignored",
      "at": "2026-11-22T12:00:00Z",
      "trials": 1,
      "triedAt": "2026-11-22T11:59:00Z"
    }
  }
}
`
	text := wholewrite.FormatRecords(all, version)
	if text != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
	back, err := wholewrite.ParseRecords(strings.Replace(text, `"s1"`, `"S1"`, 1))
	if err != nil || len(back) != 1 || back["s1"] != all["s1"] {
		t.Errorf("read as %+v, %v", back, err)
	}
	for _, bad := range []string{"yes", "[]", `{"s": 1}`, strings.Repeat(" ", 1<<17)} {
		if _, err := wholewrite.ParseRecords(bad); err == nil {
			t.Errorf("%.20q is read", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"s":{"version":"v1","addresses":{"answer":"taken","at":"2026-11-22T12:00:00+23:59","trials":-1}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := wholewrite.ParseRecords(text)
		if err != nil {
			return
		}
		for _, r := range all {
			for _, c := range wholewrite.BatchChanges() {
				k := wholewrite.State{BatchSetting: wholewrite.Auto, Version: r.Version, Record: r}
				if d := k.DecideChange(c, now, "nodes drain"); d.Permission == wholewrite.Once || d.Reason == "" {
					t.Errorf("%+v", d)
				}
			}
			again, err := wholewrite.ParseRecords(wholewrite.FormatRecords(all, r.Version))
			if err != nil || len(again) > len(all) {
				t.Errorf("written and read: %v, %v", again, err)
			}
		}
	})
}

func TestTheSettingIsAWordOrABoolean(t *testing.T) {
	for text, want := range map[string]string{
		"true": "true", `"true"`: "true", "false": "false", `"false"`: "false", `"auto"`: `"auto"`, `"Auto"`: `"auto"`, `"perhaps"`: "perhaps is none", "1": "no word", "{}": "no word",
	} {
		var s wholewrite.Setting
		got := ""
		switch err := json.Unmarshal([]byte(text), &s); {
		case err != nil:
			got = "no word"
		case !s.IsValid():
			got = string(s) + " is none"
		default:
			back, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			got = string(back)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

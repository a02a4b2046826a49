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
func whole(a behaviour.Answer) behaviour.Behaviour {
	return behaviour.Behaviour{WholeWriteAddresses: a}
}

// said is a record of this version with the given age.
func said(a behaviour.Answer, ago time.Duration) wholewrite.Record {
	return wholewrite.Record{Version: version, Addresses: wholewrite.Verdict{Answer: a, At: now.Add(-ago), Trials: 1, TriedAt: now.Add(-ago)}}
}

// tried is a record of inconclusive trials.
func tried(times int, ago time.Duration) wholewrite.Record {
	return wholewrite.Record{Version: version, Addresses: wholewrite.Verdict{Trials: times, TriedAt: now.Add(-ago)}}
}

func TestWhetherPoolsMayBeWrittenTogether(t *testing.T) {
	other := said(behaviour.Taken, time.Minute)
	other.Version = "v1.1.0"
	spent := tried(3, 2*time.Hour)
	spent.Version = "v1.1.0"
	for _, tt := range []struct {
		about   string
		k       wholewrite.Known
		unrest  string
		want    wholewrite.Leave
		why     string
		verdict string
	}{
		{"nothing is known, and all is calm", wholewrite.Known{}, "", wholewrite.Try, "not tried yet", "unknown"},
		{"nothing is known, and a node drains", wholewrite.Known{}, "nodes drain", wholewrite.No, "not tried yet: nodes drain", "unknown"},
		{"seen here to be taken, whatever goes on", wholewrite.Known{Seen: whole(behaviour.Taken)}, "nodes drain", wholewrite.Yes, "Azure was seen by this process to take them", "taken"},
		{"seen here to be ignored", wholewrite.Known{Seen: whole(behaviour.Ignored)}, "", wholewrite.No, "Azure was seen by this process to ignore them", "ignored"},
		{"on record as taken", wholewrite.Known{Record: said(behaviour.Taken, day)}, "nodes drain", wholewrite.Yes, "Azure was seen to take them, last on 2026-11-21", "taken"},
		{"on record as ignored", wholewrite.Known{Record: said(behaviour.Ignored, day)}, "", wholewrite.No, "Azure was seen to ignore them, last on 2026-11-21", "ignored"},
		{"the other change says nothing", wholewrite.Known{
			Seen:   behaviour.Behaviour{WholeWriteAdminStates: behaviour.Taken},
			Record: wholewrite.Record{Version: version, AdminStates: wholewrite.Verdict{Answer: behaviour.Taken, At: now}},
		}, "nodes drain", wholewrite.No, "not tried yet: nodes drain", "unknown"},

		{"a verdict of 29 days", wholewrite.Known{Record: said(behaviour.Ignored, 29*day)}, "", wholewrite.No, "Azure was seen to ignore them", "ignored"},
		{"a verdict of 30 days has ended", wholewrite.Known{Record: said(behaviour.Ignored, 30*day)}, "", wholewrite.Try, "not tried yet", "unknown"},
		{"so has one that was taken", wholewrite.Known{Record: said(behaviour.Taken, 30*day)}, "nodes drain", wholewrite.No, "not tried yet: nodes drain", "unknown"},
		{"one of another version", wholewrite.Known{Record: other}, "", wholewrite.Try, "not tried yet", "unknown"},
		{"one of the far future, which a clock has made", wholewrite.Known{Record: said(behaviour.Taken, -40*day)}, "nodes drain", wholewrite.No, "not tried yet", "unknown"},
		{"one that nobody can have written", wholewrite.Known{Record: said("perhaps", day)}, "nodes drain", wholewrite.No, "not tried yet", "unknown"},

		{"a trial that came to nothing a moment ago", wholewrite.Known{Record: tried(1, time.Minute)}, "", wholewrite.No, "tried, and nothing was learned: the next trial is after 2026-11-22T12:59:00Z", "unknown"},
		{"an hour ago", wholewrite.Known{Record: tried(1, time.Hour)}, "", wholewrite.Try, "not tried yet", "unknown"},
		{"the second", wholewrite.Known{Record: tried(2, time.Hour)}, "", wholewrite.Try, "not tried yet", "unknown"},
		{"the third was the last", wholewrite.Known{Record: tried(3, 2*time.Hour)}, "", wholewrite.No, "tried 3 times, and nothing was learned: the next trial is after 2026-12-22, or by another version of Weir", "unknown"},
		{"for 30 days", wholewrite.Known{Record: tried(3, 30*day)}, "", wholewrite.Try, "not tried yet", "unknown"},
		{"or until another version", wholewrite.Known{Record: spent}, "", wholewrite.Try, "not tried yet", "unknown"},

		{"the record is not read yet", wholewrite.Known{Unread: "no answer"}, "", wholewrite.No, "what is on record could not be read yet: no answer", "unknown"},
		{"but a file speaks", wholewrite.Known{Unread: "no answer", Probed: whole(behaviour.Taken)}, "", wholewrite.Yes, "Azure was found to take them, by --azure-behaviour", "taken"},
		{"a file counts more than the record", wholewrite.Known{Probed: whole(behaviour.Ignored), Record: said(behaviour.Taken, day)}, "", wholewrite.No, "Azure was found to ignore them, by --azure-behaviour", "ignored"},
		{"what was seen here more than a file", wholewrite.Known{Probed: whole(behaviour.Taken), Seen: whole(behaviour.Ignored)}, "", wholewrite.No, "Azure was seen by this process to ignore them", "ignored"},
		{"a file that does not say", wholewrite.Known{Probed: behaviour.Behaviour{Overlap: behaviour.Lock}}, "", wholewrite.Try, "not tried yet", "unknown"},

		{"true asks nobody", wholewrite.Known{Setting: wholewrite.Always, Record: said(behaviour.Ignored, day), Probed: whole(behaviour.Ignored), Unread: "no answer"}, "nodes drain", wholewrite.Yes, "enableLoadBalancerWholeWrites is true", "on"},
		{"but believes what it sees", wholewrite.Known{Setting: wholewrite.Always, Seen: whole(behaviour.Ignored)}, "", wholewrite.No, "Azure was seen by this process to ignore them", "ignored"},
		{"of either", wholewrite.Known{Setting: wholewrite.Always, Seen: behaviour.Behaviour{WholeWriteAdminStates: behaviour.Ignored}}, "", wholewrite.No, "Azure was seen by this process to ignore admin states", "ignored"},
		{"false is false", wholewrite.Known{Setting: wholewrite.Never, Seen: whole(behaviour.Taken), Record: said(behaviour.Taken, day)}, "", wholewrite.No, "enableLoadBalancerWholeWrites is false", "off"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			if tt.k.Setting == "" {
				tt.k.Setting = wholewrite.Auto
			}
			tt.k.Version = version
			got := tt.k.May(wholewrite.Addresses, now, tt.unrest)
			if got.Leave != tt.want || !strings.HasPrefix(got.Why, tt.why) {
				t.Errorf("got %+v, want %d: %s", got, tt.want, tt.why)
			}
			if v := tt.k.Verdict(wholewrite.Addresses, now); v != tt.verdict {
				t.Errorf("the metric says %q, want %q", v, tt.verdict)
			}
		})
	}
}

// A trial counts from before it starts, whatever its result; a confirmed verdict is extended.
func TestWhatIsPutOnRecord(t *testing.T) {
	known := func(r wholewrite.Record, c wholewrite.Change, at time.Time) wholewrite.Leave {
		return wholewrite.Known{Setting: wholewrite.Auto, Version: version, Record: r}.May(c, at, "").Leave
	}
	expect := func(what string, got, want wholewrite.Leave) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %d, want %d", what, got, want)
		}
	}
	r := said(behaviour.Taken, time.Hour)
	r.Version = "v1.1.0"
	r = r.Tried(wholewrite.Addresses, version, now)
	if r.Version != version || r.Addresses.Trials != 1 || r.Addresses.Answer != "" {
		t.Errorf("the first trial of a version: %+v", r)
	}
	expect("right after it", known(r, wholewrite.Addresses, now), wholewrite.No)
	expect("of admin states nothing was tried", known(r, wholewrite.AdminStates, now), wholewrite.Try)
	r = r.Tried(wholewrite.AdminStates, version, now)
	r, fresh := r.Saw(wholewrite.Addresses, behaviour.Taken, version, now.Add(time.Minute))
	expect("the verdict", known(r, wholewrite.Addresses, now.Add(time.Hour)), wholewrite.Yes)
	expect("that of admin states is still to come", known(r, wholewrite.AdminStates, now.Add(time.Minute)), wholewrite.No)
	again, stale := r.Saw(wholewrite.Addresses, behaviour.Taken, version, now.Add(2*time.Hour))
	if !fresh || stale {
		t.Errorf("the first time %t, the same day %t", fresh, stale)
	}
	later, fresh := again.Saw(wholewrite.Addresses, behaviour.Taken, version, now.Add(20*day))
	expect("seen again on the 20th day it holds on the 49th", known(later, wholewrite.Addresses, now.Add(49*day)), wholewrite.Yes)
	other, changed := later.Saw(wholewrite.Addresses, behaviour.Ignored, version, now.Add(20*day))
	expect("Azure does otherwise", known(other, wholewrite.Addresses, now.Add(20*day)), wholewrite.No)
	if !fresh || !changed {
		t.Errorf("the 20th day %t, another answer %t", fresh, changed)
	}
	if third := r.Tried(wholewrite.AdminStates, version, now.Add(day)).Tried(wholewrite.AdminStates, version, now.Add(40*day)); third.AdminStates.Trials != 1 {
		t.Errorf("trials of 39 days ago still count: %+v", third.AdminStates)
	}
}

func TestTheRecordIsText(t *testing.T) {
	all := map[string]wholewrite.Record{
		"s1": {Version: version, Addresses: wholewrite.Verdict{Answer: behaviour.Ignored, At: now, Trials: 1, TriedAt: now.Add(-time.Minute)}},
		"s2": {Version: "v1.1.0", Addresses: wholewrite.Verdict{Answer: behaviour.Taken, At: now}},
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
	text := wholewrite.Format(all, version)
	if text != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
	back, err := wholewrite.Parse(strings.Replace(text, `"s1"`, `"S1"`, 1))
	if err != nil || len(back) != 1 || back["s1"] != all["s1"] {
		t.Errorf("read as %+v, %v", back, err)
	}
	for _, bad := range []string{"yes", "[]", `{"s": 1}`, strings.Repeat(" ", 1<<17)} {
		if _, err := wholewrite.Parse(bad); err == nil {
			t.Errorf("%.20q is read", bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"s":{"version":"v1","addresses":{"answer":"taken","at":"2026-11-22T12:00:00+23:59","trials":-1}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := wholewrite.Parse(text)
		if err != nil {
			return
		}
		for _, r := range all {
			for _, c := range wholewrite.Changes() {
				k := wholewrite.Known{Setting: wholewrite.Auto, Version: r.Version, Record: r}
				if d := k.May(c, now, "nodes drain"); d.Leave == wholewrite.Try || d.Why == "" {
					t.Errorf("%+v", d)
				}
			}
			again, err := wholewrite.Parse(wholewrite.Format(all, r.Version))
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
		case !s.Valid():
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

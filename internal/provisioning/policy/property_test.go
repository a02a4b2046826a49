// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Despite user requests, process deaths and clock jumps, attempts never overlap, none starts before
// NotBefore, within the minimum interval or while cancelled, and there are never more than the
// policy and the requests allow.
func TestLawAttempts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newSimulation()
		p.policy.Retries = rapid.IntRange(0, 4).Draw(t, "retries")
		p.takes = time.Duration(rapid.IntRange(1, 40).Draw(t, "takes")) * time.Minute
		allowed := 1 + p.policy.Retries
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 8).Draw(t, "what") {
			case 0:
				p.setRequest(&p.asked.Cancel)
				before := len(p.begins)
				p.working = p.working && rapid.Bool().Draw(t, "survives")
				p.advanceTime(100 * time.Hour)
				if len(p.begins) != before {
					t.Fatalf("%d attempts began after they were cancelled", len(p.begins)-before)
				}
				if second, d := p.state.cancelAttempts(p.input(), p.now()); second != p.state || d.Reason != "" {
					if p.state.Phase != Running {
						t.Fatalf("cancelled twice: %+v, then %+v", p.state, second)
					}
				}
			case 1:
				p.setRequest(&p.asked.RetryNow)
				allowed += 1 + p.policy.Retries // after a success the count starts over
			case 2:
				p.until = 0 // unless the running attempt ends with another Retry-After
				p.setRequest(&p.asked.Reset)
				allowed += 1 + p.policy.Retries
			case 3:
				p.job += "'"
				allowed += 1 + p.policy.Retries
			case 4:
				p.working = false // the process dies
			case 5:
				p.server = time.Duration(rapid.IntRange(0, 600).Draw(t, "retry-after")) * time.Minute
			case 6:
				p.outcome = rapid.SampledFrom([]Result{ResultFailed, ResultSucceeded, ResultInvalid}).Draw(t, "outcome")
			case 7:
				jump := rapid.SampledFrom([]time.Duration{time.Hour, -time.Hour}).Draw(t, "jump")
				p.clock += jump
				p.until -= max(0, jump) // it comes sooner by that much
				p.after = 0
			}
			p.advanceTime(time.Duration(rapid.IntRange(0, 5000).Draw(t, "pass")) * time.Second)
			if p.early {
				t.Fatalf("an attempt began at %v, and the server had named %s", p.begins[len(p.begins)-1], p.until)
			}
			if p.tooEarly {
				t.Fatalf("an attempt began at %v, less than %s after the one before had ended", p.begins[len(p.begins)-1], p.policy.MinInterval)
			}
			if len(p.begins) > allowed || int64(len(p.begins)) != p.state.Number {
				t.Fatalf("%d attempts began, %d are on record, %d are allowed", len(p.begins), p.state.Number, allowed)
			}
		}
		for i := 1; i < len(p.begins); i++ {
			if p.begins[i] <= p.begins[i-1] {
				t.Fatalf("attempts begin at %v", p.begins)
			}
		}
	})
}

// If every attempt fails, there are at most 1 + retries attempts, plus one per user request.
func TestLawAttemptsOfWhatAlwaysFails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newSimulation()
		p.policy.Retries = rapid.IntRange(0, 6).Draw(t, "retries")
		p.takes = time.Duration(rapid.IntRange(1, 40).Draw(t, "takes")) * time.Minute
		p.server = time.Duration(rapid.IntRange(0, 90).Draw(t, "retry-after")) * time.Minute
		requested := 0
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				p.setRequest(&p.asked.RetryNow)
				requested++
			case 1:
				p.working = false // the process dies
			case 2:
				p.clock += rapid.SampledFrom([]time.Duration{time.Hour, -time.Hour}).Draw(t, "jump")
			}
			p.advanceTime(time.Duration(rapid.IntRange(0, 5000).Draw(t, "pass")) * time.Second)
		}
		for range 100 { // a clock set back by an hour lengthens a wait but never ends one
			p.advanceTime(100 * time.Hour)
		}
		if n := len(p.begins); n > p.policy.Retries+1+requested || n < p.policy.Retries+1 || requested == 0 && n != p.policy.Retries+1 || p.state.Phase != Failed {
			t.Fatalf("%d attempts, with %d retries and asked for %d times; %s", n, p.policy.Retries, requested, p.state.Phase)
		}
	})
}

// A repeated decision changes nothing and emits no event.
func TestLawNoMessageIsRepeated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		some := func(name string) time.Time {
			return at.Add(time.Duration(rapid.IntRange(-7200, 7200).Draw(t, name)) * time.Second)
		}
		texts := rapid.SampledFrom([]string{"", "x", at.Format(time.RFC3339), at.Add(time.Hour).Format(time.RFC3339)})
		s := State{
			Phase:      rapid.SampledFrom([]Phase{"", Waiting, Succeeded, Failed, Cancelled}).Draw(t, "phase"),
			SpecDigest: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "job"), Attempts: rapid.IntRange(1, 8).Draw(t, "begun"),
			Since: some("since"), NotBefore: some("not before"), RetryRequested: rapid.Bool().Draw(t, "asked"), Cancelled: rapid.Bool().Draw(t, "cancelled"),
		}
		in := Input{SpecDigest: "a", Policy: DefaultPolicy(), Requests: Requests{texts.Draw(t, "cancel"), texts.Draw(t, "retry"), texts.Draw(t, "reset")}}
		s, d := s.NextAction(in, at)
		in.AtWork = d.Action == StartAttempt
		second, then := s.NextAction(in, at)
		if second != s || len(then.Events) > 0 || then.Action == StartAttempt || then.Action == ResumeAttempt {
			t.Fatalf("first %+v %+v, then %+v %+v", s, d, second, then)
		}
	})
}

func TestLogs(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var l Log
	if l.Text() != "" {
		t.Errorf("an empty log is %q", l.Text())
	}
	l.HideSecrets("tok-secret", "line one\n  -----KEY-----\nend", "abc")
	l.AddLine(at, "with tok-secret and dG9rLXNlY3JldA== and -----KEY-----, abc\nforged line")
	if want := "2026-11-21T12:00:00Z with [hidden] and [hidden] and [hidden], abc forged line\n"; l.Text() != want {
		t.Errorf("got %q, want %q", l.Text(), want)
	}
	for i := range 10000 {
		l.AddLine(at, strings.Repeat("x", i%3000))
	}
	l.AddLine(at, "the end")
	text := l.Text()
	if len(text) > MaxLog || !strings.HasPrefix(text, "2026-11-21T12:00:00Z with") || !strings.HasSuffix(text, " the end\n") || !strings.Contains(text, " lines left out …\n") {
		t.Errorf("%d bytes: %.80s … %s", len(text), text, text[len(text)-80:])
	}
}

// A secret is redacted in every quoted form.
func TestQuotedSecrets(t *testing.T) {
	const secret = "p\"a<b>\\&/ß\x01"
	var l Log
	l.HideSecrets(secret)
	text, err := json.Marshal(map[string]string{"password": secret})
	if err != nil {
		t.Fatal(err)
	}
	for _, output := range []string{
		secret, string(text), fmt.Sprintf("%q", secret), fmt.Sprintf("%+q", secret), url.QueryEscape(secret), "https://" + url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawStdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret)),
		"p\\\"a<b>\\\\&/ß\\u0001", // JSON without HTML escapes
	} {
		if got := l.CleanText(output); !strings.Contains(got, "[hidden]") || len(got) > len(`{"password":"[hidden]"}`) {
			t.Errorf("%s: got %s", output, got)
		}
	}
}

// With too many secrets to search for, all text is withheld cheaply.
func TestTooManySecrets(t *testing.T) {
	var l Log
	var many []string
	for i := range 200_000 {
		many = append(many, "secret-"+strconv.Itoa(i))
	}
	l.HideSecrets(many...)
	l.HideSecrets("one more")
	if got := l.CleanText("with secret-199999"); strings.Contains(got, "secret-") {
		t.Errorf("got %q", got)
	}
}

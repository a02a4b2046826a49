// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/operator"
	"weir.dev/weir/internal/words"
)

// mostOfCalls is how many bytes of a Weir's answer are read: more than its memory of calls has.
const mostOfCalls = 32 << 20

// mostListed is how many are listed, and kept for those who look: 2 MiB as a rule.
const mostListed = 5000

// spans are how far back calls are shown; the first is what is shown unasked.
var spans = []string{"15m", "1h", "6h", "24h"}

// called is what a running Weir keeps of its requests to Azure.
type called struct {
	At    time.Time
	Since time.Duration
	line  timeline     // of all of them
	calls []calls.Call // the newest first, mostListed at most
}

// timeline is a picture of calls: so many of each kind in each of its slots.
type timeline struct {
	From, To              time.Time
	OK, Refused, Throttle int // Refused without those that were throttled
	Slots                 []slot
	most                  int
}

// slot is a piece of time.
type slot struct{ OK, Refused, Throttle int }

const slotsOfTimeline = 60

// gate is what keeps Weir from asking Azure about some pools until a time.
type gate struct {
	Balancer string
	Until    time.Time
	Pools    int
	Why      string
}

// gatesOf puts pools that wait together by load balancer and time, those that wait for least first.
func gatesOf(pools []pool) []gate {
	of := map[gate]int{}
	for _, p := range pools {
		if !p.Next.IsZero() {
			of[gate{Balancer: p.Balancer, Until: p.Next, Why: p.Gate}]++
		}
	}
	all := make([]gate, 0, len(of))
	for g, n := range of {
		g.Pools = n
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b gate) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Balancer, b.Balancer), cmp.Compare(a.Why, b.Why))
	})
	return all
}

// query is what people choose of calls.
type query struct {
	Since  string
	Cause  string // KIND/NAMESPACE/NAME
	Failed bool
}

func queryOf(q url.Values) query {
	c := query{Since: q.Get("since"), Cause: q.Get("cause"), Failed: q.Get("failed") == "true"}
	if !slices.Contains(spans, c.Since) {
		c.Since = spans[0]
	}
	return c
}

// Link is where these calls are, from the root.
func (c query) Link() string {
	q := url.Values{"since": {c.Since}}
	if c.Cause != "" {
		q.Set("cause", c.Cause)
	}
	if c.Failed {
		q.Set("failed", "true")
	}
	return "calls?" + q.Encode()
}

// Spans are links to the same calls of other times.
func (c query) Spans() []query {
	var all []query
	for _, s := range spans {
		all = append(all, query{Since: s, Cause: c.Cause, Failed: c.Failed})
	}
	return all
}

// Other is the query for all calls where this one is for those that failed, and the other way round.
func (c query) Other() query { return query{Since: c.Since, Cause: c.Cause, Failed: !c.Failed} }

// calls answers with the last requests to Azure.
func (s *sheets) calls(w http.ResponseWriter, r *http.Request) {
	q := queryOf(r.URL.Query())
	had, err := take(r.Context(), s.cache, "calls "+q.Link(), func(ctx context.Context) (*called, error) { return s.ask(ctx, q) })
	if err != nil {
		s.print(w, http.StatusBadGateway, "problem", sheet{Title: "Calls", Here: "calls", Brief: "No calls can be shown.", At: time.Now(), Body: problem{
			Is: "No running Weir tells of its requests to Azure.", Why: err.Error(),
			Do: "They are in the memory of the leader. All else on this page comes from the API server.",
		}})
		return
	}
	body := struct {
		Query  query
		Line   timeline
		Listed int
		Rows   rows[calls.Call]
		Gates  []gate
		More   int
	}{Query: q, Line: had.line, Listed: len(had.calls), Rows: rowsOf(had.calls, r.URL.Query(), q.Link())}
	if f, err := s.look(r.Context()); err == nil { // else the rest is worth showing
		body.Gates = f.Gates[:min(len(f.Gates), shownGates)]
		body.More = len(f.Gates) - len(body.Gates)
	}
	s.print(w, http.StatusOK, "calls", sheet{Title: "Calls", Here: "calls", At: had.At, Brief: body.Line.Words(), Body: body})
}

// ask asks a running Weir.
func (s *sheets) ask(ctx context.Context, q query) (*called, error) {
	since, err := time.ParseDuration(q.Since)
	if err != nil {
		return nil, err
	}
	f, err := operator.ParseQuery(url.Values{"cause": {q.Cause}}, time.Now())
	if err != nil {
		return nil, err
	}
	f.Failed = q.Failed
	lines, err := app.AskCalls(ctx, s.Way, f, since)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lines.Close() }() // only read
	had := &called{At: time.Now(), Since: since}
	for each := json.NewDecoder(io.LimitReader(lines, mostOfCalls)); ; {
		var c calls.Call
		if err := each.Decode(&c); errors.Is(err, io.EOF) {
			had.line = lineOf(had)
			slices.Reverse(had.calls)
			had.calls = slices.Clone(had.calls[:min(len(had.calls), mostListed)])
			return had, nil
		} else if err != nil {
			return nil, fmt.Errorf("the leader's answer: %w", err)
		}
		had.calls = append(had.calls, c)
	}
}

// lineOf counts calls by time.
func lineOf(had *called) timeline {
	l := timeline{From: had.At.Add(-had.Since), To: had.At, Slots: make([]slot, slotsOfTimeline)}
	for _, c := range had.calls {
		i := int(c.At.Sub(l.From) * slotsOfTimeline / had.Since)
		at := &l.Slots[min(max(0, i), slotsOfTimeline-1)]
		switch {
		case c.Status == http.StatusTooManyRequests:
			at.Throttle++
			l.Throttle++
		case c.Status == 0 || c.Status >= http.StatusBadRequest:
			at.Refused++
			l.Refused++
		default:
			at.OK++
			l.OK++
		}
	}
	for _, s := range l.Slots {
		l.most = max(l.most, s.OK+s.Refused+s.Throttle)
	}
	return l
}

// All is how many requests the picture shows.
func (l timeline) All() int { return l.OK + l.Refused + l.Throttle }

// Words are what the picture shows.
func (l timeline) Words() string {
	said := words.Count(l.All(), "request")
	if l.Throttle > 0 {
		said += fmt.Sprintf(", %d throttled (429)", l.Throttle)
	}
	if l.Refused > 0 {
		said += fmt.Sprintf(", %d failed otherwise", l.Refused)
	}
	return said
}

// Most is how many requests the highest column stands for.
func (l timeline) Most() int { return l.most }

// Each is how long a column stands for, in words.
func (l timeline) Each() string { return duration.HumanDuration(l.To.Sub(l.From) / slotsOfTimeline) }

// piece is one of a picture, and what it stands for.
type piece struct {
	drawn

	Is string
}

// Columns are the pieces of the picture, throttled ones on top.
func (l timeline) Columns() []piece {
	var out []piece
	for i, s := range l.Slots {
		y := crest + deep
		for _, p := range []struct {
			n  int
			is string
		}{{s.OK, "ok"}, {s.Refused, "refused"}, {s.Throttle, "throttled"}} {
			if p.n > 0 {
				high := max(2, p.n*(deep-4)/l.most)
				y -= high
				out = append(out, piece{drawn{i * columnStep, y, columnWide, high}, p.is})
			}
		}
	}
	return out
}

// Wide is how wide the picture is.
func (l timeline) Wide() int { return slotsOfTimeline*columnStep - (columnStep - columnWide) }

// short is an ARM id from its resource type on.
func short(id string) string {
	if _, rest, ok := strings.Cut(id, "/providers/"); ok {
		if _, rest, ok = strings.Cut(rest, "/"); ok {
			return rest
		}
	}
	return id
}

// cited is whom a call was made for, with a link to it.
type cited struct{ Kind, Name, Link string }

// causesIn are whom a call was made for, at most three of them.
func causesIn(c calls.Call) (out []cited) {
	for _, of := range c.Causes[:min(len(c.Causes), 3)] {
		out = append(out, cited{of.Kind, strings.TrimPrefix(of.Namespace+"/"+of.Name, "/"), link(of.Kind, of.Namespace, of.Name)})
	}
	if more := len(c.Causes) - len(out); more > 0 {
		out = append(out, cited{Name: fmt.Sprintf("and %d more", more)})
	}
	return out
}

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

// mostOfCalls is more than the call log holds.
const mostOfCalls = 32 << 20

// mostListed is typically 2 MiB.
const mostListed = 5000

// spans are the selectable ages of calls; the first is the default.
var spans = []string{"15m", "1h", "6h", "24h"}

type called struct {
	At    time.Time
	Since time.Duration
	line  timeline
	calls []calls.Call // newest first, at most mostListed
}

type timeline struct {
	From, To              time.Time
	OK, Refused, Throttle int // Refused excludes throttled calls
	Slots                 []slot
	most                  int
}

type slot struct{ OK, Refused, Throttle int }

const slotsOfTimeline = 60

// gate is a wait that delays requests for some pools.
type gate struct {
	Balancer string
	Until    time.Time
	Pools    int
	Why      string
}

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

// Spans returns the same query for each age.
func (c query) Spans() []query {
	var all []query
	for _, s := range spans {
		all = append(all, query{Since: s, Cause: c.Cause, Failed: c.Failed})
	}
	return all
}

// Other toggles the filter for failed calls.
func (c query) Other() query { return query{Since: c.Since, Cause: c.Cause, Failed: !c.Failed} }

func (s *sheets) calls(w http.ResponseWriter, r *http.Request) {
	q := queryOf(r.URL.Query())
	recent, err := take(r.Context(), s.cache, "calls "+q.Link(), func(ctx context.Context) (*called, error) { return s.ask(ctx, q) })
	if err != nil {
		s.print(w, http.StatusBadGateway, "problem", sheet{Title: "Calls", Here: "calls", Brief: "No calls can be shown.", At: time.Now(), Body: problem{
			Is: "No running Weir reports its requests to Azure.", Why: err.Error(),
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
	}{Query: q, Line: recent.line, Listed: len(recent.calls), Rows: rowsOf(recent.calls, r.URL.Query(), q.Link())}
	if f, err := s.look(r.Context()); err == nil { // on an error, show the calls without gates
		body.Gates = f.Gates[:min(len(f.Gates), shownGates)]
		body.More = len(f.Gates) - len(body.Gates)
	}
	s.print(w, http.StatusOK, "calls", sheet{Title: "Calls", Here: "calls", At: recent.At, Brief: body.Line.Words(), Body: body})
}

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
	defer func() { _ = lines.Close() }()
	recent := &called{At: time.Now(), Since: since}
	for each := json.NewDecoder(io.LimitReader(lines, mostOfCalls)); ; {
		var c calls.Call
		if err := each.Decode(&c); errors.Is(err, io.EOF) {
			recent.line = lineOf(recent)
			slices.Reverse(recent.calls)
			recent.calls = slices.Clone(recent.calls[:min(len(recent.calls), mostListed)])
			return recent, nil
		} else if err != nil {
			return nil, fmt.Errorf("the leader's answer: %w", err)
		}
		recent.calls = append(recent.calls, c)
	}
}

func lineOf(recent *called) timeline {
	l := timeline{From: recent.At.Add(-recent.Since), To: recent.At, Slots: make([]slot, slotsOfTimeline)}
	for _, c := range recent.calls {
		i := int(c.At.Sub(l.From) * slotsOfTimeline / recent.Since)
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

func (l timeline) All() int { return l.OK + l.Refused + l.Throttle }

func (l timeline) Words() string {
	summary := words.Count(l.All(), "request")
	if l.Throttle > 0 {
		summary += fmt.Sprintf(", %d throttled (429)", l.Throttle)
	}
	if l.Refused > 0 {
		summary += fmt.Sprintf(", %d failed otherwise", l.Refused)
	}
	return summary
}

// Most is the number of requests in the highest column.
func (l timeline) Most() int { return l.most }

// Each is the time span of a column, as text.
func (l timeline) Each() string { return duration.HumanDuration(l.To.Sub(l.From) / slotsOfTimeline) }

type piece struct {
	drawn

	Is string
}

// Columns returns the rectangles of the chart; throttled calls are on top.
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

func (l timeline) Wide() int { return slotsOfTimeline*columnStep - (columnStep - columnWide) }

func short(id string) string {
	if _, rest, ok := strings.Cut(id, "/providers/"); ok {
		if _, rest, ok = strings.Cut(rest, "/"); ok {
			return rest
		}
	}
	return id
}

type cited struct{ Kind, Name, Link string }

// causesIn returns at most three objects that a call was made for.
func causesIn(c calls.Call) (out []cited) {
	for _, of := range c.Causes[:min(len(c.Causes), 3)] {
		out = append(out, cited{of.Kind, strings.TrimPrefix(of.Namespace+"/"+of.Name, "/"), link(of.Kind, of.Namespace, of.Name)})
	}
	if more := len(c.Causes) - len(out); more > 0 {
		out = append(out, cited{Name: fmt.Sprintf("and %d more", more)})
	}
	return out
}

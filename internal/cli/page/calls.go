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
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/requestlog"
)

// maxCallsBytes is more than the call log holds.
const maxCallsBytes = 32 << 20

// maxListedCalls is typically 2 MiB.
const maxListedCalls = 5000

// callAges are the selectable ages of calls; the first is the default.
var callAges = []string{"15m", "1h", "6h", "24h"}

type recentCalls struct {
	At       time.Time
	Since    time.Duration
	timeline timeline
	calls    []requestlog.Call // newest first, at most maxListedCalls
}

type timeline struct {
	From, To              time.Time
	OK, Refused, Throttle int // Refused excludes throttled calls
	Slots                 []timeSlot
	maxRequests           int
}

type timeSlot struct{ OK, Refused, Throttle int }

const timelineSlots = 60

// delay is a wait that delays requests for some pools.
type delay struct {
	Balancer string
	Until    time.Time
	Pools    int
	Why      string
}

func groupDelays(pools []poolRow) []delay {
	of := map[delay]int{}
	for _, p := range pools {
		if !p.Next.IsZero() {
			of[delay{Balancer: p.Balancer, Until: p.Next, Why: p.Gate}]++
		}
	}
	delays := make([]delay, 0, len(of))
	for g, n := range of {
		g.Pools = n
		delays = append(delays, g)
	}
	slices.SortFunc(delays, func(a, b delay) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Balancer, b.Balancer), cmp.Compare(a.Why, b.Why))
	})
	return delays
}

type callQuery struct {
	Since  string
	Cause  string // KIND/NAMESPACE/NAME
	Failed bool
}

func parseQuery(q url.Values) callQuery {
	c := callQuery{Since: q.Get("since"), Cause: q.Get("cause"), Failed: q.Get("failed") == "true"}
	if !slices.Contains(callAges, c.Since) {
		c.Since = callAges[0]
	}
	return c
}

func (c callQuery) Link() string {
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
func (c callQuery) Spans() []callQuery {
	var queries []callQuery
	for _, s := range callAges {
		queries = append(queries, callQuery{Since: s, Cause: c.Cause, Failed: c.Failed})
	}
	return queries
}

// Other toggles the filter for failed calls.
func (c callQuery) Other() callQuery {
	return callQuery{Since: c.Since, Cause: c.Cause, Failed: !c.Failed}
}

func (s *pageServer) serveCalls(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r.URL.Query())
	recent, err := getCached(r.Context(), s.cache, "calls "+q.Link(), func(ctx context.Context) (*recentCalls, error) { return s.fetchCalls(ctx, q) })
	if err != nil {
		s.renderPage(w, http.StatusBadGateway, "problem", pageData{Title: "Calls", Here: "calls", Summary: "No calls can be shown.", At: time.Now(), Body: errorPage{
			Title: "No running Weir reports its requests to Azure.", Why: err.Error(),
			Fix: "They are in the memory of the leader. All else on this page comes from the API server.",
		}})
		return
	}
	body := struct {
		Query  callQuery
		Line   timeline
		Listed int
		Rows   listPage[requestlog.Call]
		Gates  []delay
		More   int
	}{Query: q, Line: recent.timeline, Listed: len(recent.calls), Rows: newListPage(recent.calls, r.URL.Query(), q.Link())}
	if f, err := s.getFrontPage(r.Context()); err == nil { // on an error, show the calls without gates
		body.Gates = f.Gates[:min(len(f.Gates), maxDelays)]
		body.More = len(f.Gates) - len(body.Gates)
	}
	s.renderPage(w, http.StatusOK, "calls", pageData{Title: "Calls", Here: "calls", At: recent.At, Summary: body.Line.Words(), Body: body})
}

func (s *pageServer) fetchCalls(ctx context.Context, q callQuery) (*recentCalls, error) {
	since, err := time.ParseDuration(q.Since)
	if err != nil {
		return nil, err
	}
	f, err := requestlog.ParseQuery(url.Values{"cause": {q.Cause}}, time.Now())
	if err != nil {
		return nil, err
	}
	f.Failed = q.Failed
	lines, err := app.FetchCalls(ctx, s.Connection, f, since)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lines.Close() }()
	recent := &recentCalls{At: time.Now(), Since: since}
	for each := json.NewDecoder(io.LimitReader(lines, maxCallsBytes)); ; {
		var c requestlog.Call
		if err := each.Decode(&c); errors.Is(err, io.EOF) {
			recent.timeline = newTimeline(recent)
			slices.Reverse(recent.calls)
			recent.calls = slices.Clone(recent.calls[:min(len(recent.calls), maxListedCalls)])
			return recent, nil
		} else if err != nil {
			return nil, fmt.Errorf("the leader's response: %w", err)
		}
		recent.calls = append(recent.calls, c)
	}
}

func newTimeline(recent *recentCalls) timeline {
	l := timeline{From: recent.At.Add(-recent.Since), To: recent.At, Slots: make([]timeSlot, timelineSlots)}
	for _, c := range recent.calls {
		i := int(c.At.Sub(l.From) * timelineSlots / recent.Since)
		at := &l.Slots[min(max(0, i), timelineSlots-1)]
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
		l.maxRequests = max(l.maxRequests, s.OK+s.Refused+s.Throttle)
	}
	return l
}

func (t timeline) All() int { return t.OK + t.Refused + t.Throttle }

func (t timeline) Words() string {
	summary := humanize.FormatCount(t.All(), "request")
	if t.Throttle > 0 {
		summary += fmt.Sprintf(", %d throttled (429)", t.Throttle)
	}
	switch {
	case t.Refused > 0 && t.Throttle > 0:
		summary += fmt.Sprintf(", %d failed otherwise", t.Refused)
	case t.Refused > 0:
		summary += fmt.Sprintf(", %d failed", t.Refused)
	}
	return summary
}

// Most is the number of requests in the highest column.
func (t timeline) Most() int { return t.maxRequests }

// Each is the time span of a column, as text.
func (t timeline) Each() string { return duration.HumanDuration(t.To.Sub(t.From) / timelineSlots) }

type chartSegment struct {
	rectangle

	Class string
}

// Columns returns the rectangles of the chart; throttled calls are on top.
func (t timeline) Columns() []chartSegment {
	var out []chartSegment
	for i, s := range t.Slots {
		y := chartTop + chartHeight
		for _, p := range []struct {
			n     int
			class string
		}{{s.OK, "ok"}, {s.Refused, "refused"}, {s.Throttle, "throttled"}} {
			if p.n > 0 {
				high := max(2, p.n*(chartHeight-4)/t.maxRequests)
				y -= high
				out = append(out, chartSegment{rectangle{i * columnDistance, y, columnWidth, high}, p.class})
			}
		}
	}
	return out
}

func (t timeline) Wide() int { return timelineSlots*columnDistance - (columnDistance - columnWidth) }

func trimResourceID(id string) string {
	if _, rest, ok := strings.Cut(id, "/providers/"); ok {
		if _, rest, ok = strings.Cut(rest, "/"); ok {
			return rest
		}
	}
	return id
}

type linkedObject struct{ Kind, Name, Link string }

// linkCauses returns at most three objects that a call was made for.
func linkCauses(c requestlog.Call) (out []linkedObject) {
	for _, of := range c.Causes[:min(len(c.Causes), 3)] {
		out = append(out, linkedObject{of.Kind, strings.TrimPrefix(of.Namespace+"/"+of.Name, "/"), objectURL(of.Kind, of.Namespace, of.Name)})
	}
	if more := len(c.Causes) - len(out); more > 0 {
		out = append(out, linkedObject{Name: fmt.Sprintf("and %d more", more)})
	}
	return out
}

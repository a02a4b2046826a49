// SPDX-License-Identifier: Apache-2.0

package page

import (
	"embed"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"weir.dev/weir/internal/humanize"
)

//go:embed templates static
var files embed.FS

// pageData is the data of a page: common fields and Body.
type pageData struct {
	Root    string // prefix of all links
	Title   string
	Here    string // the active navigation link
	Cluster string
	Find    string
	At      time.Time
	// Still disables automatic refresh; Door shows the sign-out button.
	Still, Door bool
	// Summary is announced by screen readers when it changes.
	Summary string
	Body    any
}

// templates are the pages by name, each with the same frame.
var templates = func() map[string]*template.Template {
	frame := template.Must(template.New("frame.html").Funcs(template.FuncMap{
		"say": sanitizeText, "ago": formatAge, "agoAtMost": formatAgeAtMost, "until": formatWait, "stamp": formatTimestamp, "clock": formatTime, "texts": splitTimestamps, "link": objectURL, "column": poolColumn, "chain": newChain, "callsFor": callsURL, "short": trimResourceID, "causes": linkCauses, "took": func(d time.Duration) string { return d.Round(time.Millisecond).String() }, "lower": strings.ToLower, "hasPools": hasPools, "hasNext": hasNext,
		"on": func(s pageData, body any) pagePart { return pagePart{s, body} },
	}).ParseFS(files, "templates/frame.html", "templates/parts.html"))
	all := map[string]*template.Template{}
	for _, name := range []string{"front", "pools", "services", "wrong", "story", "calls", "problem", "login"} {
		all[name] = template.Must(template.Must(frame.Clone()).ParseFS(files, "templates/"+name+".html"))
	}
	return all
}()

type pagePart struct {
	Sheet pageData
	Data  any
}

// hasPools reports whether rows need the columns of BackendPools.
func hasPools(rows []problemObject) bool {
	return slices.ContainsFunc(rows, func(o problemObject) bool { return o.Kind == "BackendPool" || o.Service != "" || !o.Next.IsZero() })
}

// hasNext reports whether rows need the column of the next try; the messages of others have it.
func hasNext(rows []problemObject) bool {
	return slices.ContainsFunc(rows, func(o problemObject) bool { return !o.Next.IsZero() })
}

func sanitizeText(text string) string { return humanize.FormatMessage(text, humanize.MaxMessage) }

func formatAge(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return "for " + duration.HumanDuration(max(0, now.Sub(t)))
}

// formatAgeAtMost formats an age of which only a bound is known.
func formatAgeAtMost(now, bound time.Time) string {
	if bound.IsZero() {
		return ""
	}
	return "for up to " + duration.HumanDuration(max(0, now.Sub(bound)))
}

func formatWait(now, t time.Time) string {
	if !t.After(now) {
		return "now"
	}
	return "in " + duration.HumanDuration(t.Sub(now))
}

func formatTimestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func formatTime(t time.Time) string { return t.UTC().Format("15:04:05") }

type messagePart struct {
	Words string
	At    time.Time
}

var timestampPattern = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// splitTimestamps splits a message at its timestamps, so that the page can count down to them.
func splitTimestamps(message string) []messagePart {
	message = sanitizeText(message)
	var parts []messagePart
	from := 0
	for _, at := range timestampPattern.FindAllStringIndex(message, -1) {
		t, err := time.Parse(time.RFC3339, message[at[0]:at[1]])
		if err != nil { // only looks like a timestamp
			continue
		}
		parts = append(parts, messagePart{Words: message[from:at[0]]}, messagePart{Words: message[at[0]:at[1]], At: t})
		from = at[1]
	}
	return append(parts, messagePart{Words: message[from:]})
}

func objectURL(kind, namespace, name string) string {
	switch kind {
	case "BackendPool":
		return "pool/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
	case "Service":
		return "service/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
	case "Gateway":
		return "gateway/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
	case "Node":
		return "node/" + url.PathEscape(name)
	}
	return ""
}

// Dimensions of a load balancer's chart, in SVG units.
const (
	columnDistance = 12
	columnWidth    = 10
	chartTop       = 6 // distance from the top to a full column
	chartHeight    = 50
)

type rectangle struct {
	X, Y, Wide, High int
}

// poolColumn returns the rectangle of the i-th pool; its height is the share of members present.
func poolColumn(i int, l memberCounts) rectangle {
	high := max(2, chartHeight*l.PercentPresent()/100)
	return rectangle{i * columnDistance, chartTop + chartHeight - high, columnWidth, high}
}

func (b loadBalancer) Wide() int {
	columns := max(48, len(b.Pools))
	if b.HasNames() {
		columns = maxNamedColumns
	}
	return columns*columnDistance - (columnDistance - columnWidth)
}

func (b loadBalancer) Words() string {
	parts := []string{humanize.FormatCount(b.All, "pool")}
	for _, s := range []struct {
		n     int
		label string
	}{{b.InSync, "in sync"}, {b.UnderWay, "in progress"}, {b.Paused, "paused"}, {b.Away, "wrong"}} {
		if s.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", s.n, s.label))
		}
	}
	return strings.Join(parts, ", ")
}

// maxNamedColumns limits the columns with a name below; names of more would not be readable.
const maxNamedColumns = 8

// HasNames reports whether the columns of the chart have names.
func (b loadBalancer) HasNames() bool { return len(b.Pools) <= maxNamedColumns }

func (b loadBalancer) Query() string { return poolFilter{Balancer: b.Name}.filterURL() }

func (c problemCause) Query() string { return "wrong?" + url.Values{"cause": {c.Name}}.Encode() }

func callsURL(kind, namespace, name string) string {
	return callQuery{Since: callAges[1], Cause: kind + "/" + namespace + "/" + name}.Link()
}

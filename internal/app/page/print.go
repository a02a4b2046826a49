// SPDX-License-Identifier: Apache-2.0

package page

import (
	"embed"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"weir.dev/weir/internal/words"
)

//go:embed templates static
var files embed.FS

// sheet is the data of a page: common fields and Body.
type sheet struct {
	Root    string // prefix of all links
	Title   string
	Here    string // the active navigation link
	Cluster string
	Find    string
	At      time.Time
	// Still disables automatic refresh; Door shows the sign-out button.
	Still, Door bool
	// Brief is announced by screen readers when it changes.
	Brief string
	Body  any
}

// templates are the pages by name, each with the same frame.
var templates = func() map[string]*template.Template {
	frame := template.Must(template.New("frame.html").Funcs(template.FuncMap{
		"say": say, "ago": ago, "until": until, "stamp": stamp, "clock": clock, "texts": texts, "link": link, "column": column, "chain": chainOf, "callsFor": callsFor, "short": short, "causes": causesIn, "took": func(d time.Duration) string { return d.Round(time.Millisecond).String() }, "lower": strings.ToLower,
		"on": func(s sheet, body any) on { return on{s, body} },
	}).ParseFS(files, "templates/frame.html", "templates/parts.html"))
	all := map[string]*template.Template{}
	for _, name := range []string{"front", "pools", "wrong", "story", "calls", "problem", "login"} {
		all[name] = template.Must(template.Must(frame.Clone()).ParseFS(files, "templates/"+name+".html"))
	}
	return all
}()

type on struct {
	Sheet sheet
	Of    any
}

func say(text string) string { return words.Sentence(text, words.MaxMessage) }

func ago(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return "for " + duration.HumanDuration(max(0, now.Sub(t)))
}

func until(now, t time.Time) string {
	if !t.After(now) {
		return "now"
	}
	return "in " + duration.HumanDuration(t.Sub(now))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }

type text struct {
	Words string
	At    time.Time
}

var stamps = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// texts splits a message at its timestamps, so that the page can count down to them.
func texts(message string) []text {
	message = say(message)
	var all []text
	from := 0
	for _, at := range stamps.FindAllStringIndex(message, -1) {
		t, err := time.Parse(time.RFC3339, message[at[0]:at[1]])
		if err != nil { // only looks like a timestamp
			continue
		}
		all = append(all, text{Words: message[from:at[0]]}, text{Words: message[at[0]:at[1]], At: t})
		from = at[1]
	}
	return append(all, text{Words: message[from:]})
}

func link(kind, namespace, name string) string {
	switch kind {
	case "BackendPool":
		return "pool/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
	case "Service":
		return "service/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
	case "Node":
		return "node/" + url.PathEscape(name)
	}
	return ""
}

// Dimensions of a load balancer's chart, in SVG units.
const (
	columnStep = 12
	columnWide = 10
	crest      = 6 // distance from the top to a full column
	deep       = 50
)

type drawn struct {
	X, Y, Wide, High int
}

// column returns the rectangle of the i-th pool; its height is the share of members present.
func column(i int, l level) drawn {
	high := max(2, deep*l.Percent()/100)
	return drawn{i * columnStep, crest + deep - high, columnWide, high}
}

func (b balancer) Wide() int { return max(48, len(b.Pools))*columnStep - (columnStep - columnWide) }

func (b balancer) Words() string {
	parts := []string{words.Count(b.All, "pool")}
	for _, s := range []struct {
		n    int
		what string
	}{{b.Level, "level"}, {b.UnderWay, "on their way"}, {b.Paused, "paused"}, {b.Away, "wrong"}} {
		if s.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", s.n, s.what))
		}
	}
	return strings.Join(parts, ", ")
}

func (b balancer) Query() string { return choice{Balancer: b.Name}.link() }

func (c cause) Query() string { return "wrong?" + url.Values{"cause": {c.Name}}.Encode() }

func callsFor(kind, namespace, name string) string {
	return query{Since: spans[1], Cause: kind + "/" + namespace + "/" + name}.Link()
}

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

// sheet is one answer: what all sheets have, and what is its own.
type sheet struct {
	Root    string // where all addresses of the page begin
	Title   string
	Here    string // which of the links at the top this is
	Cluster string
	Find    string
	At      time.Time
	// Still is a sheet that stays as it is while somebody types, Door one that its viewer has signed in for.
	Still, Door bool
	// Brief is what a reader hears who does not see: it is said when it changes.
	Brief string
	Body  any
}

// templates are the sheets by name, each within the same frame.
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

// on is a part of a sheet, with the sheet that it is on.
type on struct {
	Sheet sheet
	Of    any
}

// say keeps what was written elsewhere from steering what is read.
func say(text string) string { return words.Sentence(text, words.MaxMessage) }

// ago is how long something is so.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return "for " + duration.HumanDuration(max(0, now.Sub(t)))
}

// until is how long it takes to a time.
func until(now, t time.Time) string {
	if !t.After(now) {
		return "now"
	}
	return "in " + duration.HumanDuration(t.Sub(now))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }

// text is a piece of a message: words, or a time.
type text struct {
	Words string
	At    time.Time
}

var stamps = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// texts finds the times in a message, so that those to come can be counted down.
func texts(message string) []text {
	message = say(message)
	var all []text
	from := 0
	for _, at := range stamps.FindAllStringIndex(message, -1) {
		t, err := time.Parse(time.RFC3339, message[at[0]:at[1]])
		if err != nil { // it only looks like one
			continue
		}
		all = append(all, text{Words: message[from:at[0]]}, text{Words: message[at[0]:at[1]], At: t})
		from = at[1]
	}
	return append(all, text{Words: message[from:]})
}

// link is where the story of an object is, from the root; empty if it has none.
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

// The measures of a load balancer's picture, in units of its own.
const (
	columnStep = 12
	columnWide = 10
	crest      = 6 // from the top: level is up to there
	deep       = 50
)

// drawn is a pool as a column of water.
type drawn struct {
	X, Y, Wide, High int
}

// column is where the i-th pool of a picture is, and how high it stands.
func column(i int, l level) drawn {
	high := max(2, deep*l.Percent()/100)
	return drawn{i * columnStep, crest + deep - high, columnWide, high}
}

// Wide is how wide the picture of a load balancer is.
func (b balancer) Wide() int { return max(48, len(b.Pools))*columnStep - (columnStep - columnWide) }

// Words are what the picture shows.
func (b balancer) Words() string {
	said := []string{words.Count(b.All, "pool")}
	for _, s := range []struct {
		n    int
		what string
	}{{b.Level, "level"}, {b.UnderWay, "on their way"}, {b.Paused, "paused"}, {b.Away, "wrong"}} {
		if s.n > 0 {
			said = append(said, fmt.Sprintf("%d %s", s.n, s.what))
		}
	}
	return strings.Join(said, ", ")
}

// Query is where all of its pools are.
func (b balancer) Query() string { return choice{Balancer: b.Name}.link() }

// Query is where all of its objects are.
func (c cause) Query() string { return "wrong?" + url.Values{"cause": {c.Name}}.Encode() }

// callsFor is where the requests are that were made for an object.
func callsFor(kind, namespace, name string) string {
	return query{Since: spans[1], Cause: kind + "/" + namespace + "/" + name}.Link()
}

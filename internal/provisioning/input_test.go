// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// Every part of a text belongs to an applied object, or the text is Invalid.
func TestNoInputIsSkipped(t *testing.T) {
	const (
		a    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
		b    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
		one  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
		two  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`
		end  = "text follows its end"
		none = "it is no object"
		key  = "a key is there twice"
	)
	crlf := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
	for about, tt := range map[string]struct{ text, want string }{
		"two objects":                            {a + "---\n" + b, "a b"},
		"JSON, one a line":                       {one + "\n" + two + "\n", "!" + end},
		"JSON on one line":                       {one + two, "!" + end},
		"JSON with a comma":                      {one + ",\n" + two, "!" + end},
		"JSON with separators":                   {one + "\n---\n" + two, "a b"},
		"JSON, and an end of a document":         {one + "\n...\n" + two, "!" + end},
		"a JSON array":                           {"[" + one + "," + two + "]", "!" + none},
		"a list of YAML":                         {"- " + one + "\n- " + two, "!" + none},
		"the separator is missing":               {a + b, "!" + key},
		"the separator is missing, and a key":    {a + "kind: Secret\n", "!" + key},
		"a key twice below":                      {a + "data: {x: y, x: z}\n", "!" + key},
		"a key twice, as text and as number":     {a + "data: {1: y, \"1\": z}\n", "!" + key},
		"a key that is a map":                    {a + "data: {{x: y}: z}\n", "!a key is no text"},
		"an end, and an object":                  {a + "...\n" + b, "!" + end},
		"an end, and text":                       {a + "...\nmore\n", "!" + end},
		"an end, and a comment":                  {a + "...\n# more\n", "a"},
		"text behind an object":                  {one + "\nmore", "!" + end},
		"a bracket behind an object":             {one + "]", "!" + end},
		"an object on the line of the separator": {a + "--- " + two, "!invalid Yaml document separator"},
		"a comment on it":                        {a + "--- # next\n" + b, "a b"},
		"spaces on it":                           {a + "---  \t\n" + b, "a b"},
		"spaces before it":                       {a + " ---\n" + b, "!"},
		"four dashes":                            {a + "----\n" + b, "!invalid Yaml document separator"},
		"Windows line ends":                      {crlf(a + "---\n" + b), "a b"},
		"line ends of an old Mac":                {strings.ReplaceAll(a+"---\n"+b, "\n", "\r"), "!" + end},
		"a mark of UTF-8":                        {byteOrderMark + a + "---\n" + b, "a b"},
		"that before a separator":                {byteOrderMark + "---\n" + a, "a"},
		"that before a second object":            {a + byteOrderMark + "---\n" + b, "!"},
		"that behind a separator":                {a + "---\n" + byteOrderMark + b, "a b"},
		"UTF-16":                                 {"\xff\xfea\x00:\x00 \x001\x00", "!yaml: "},
		"comments alone":                         {"# one\n---\n# two\n---\n", ""},
		"nothing":                                {"", ""},
		"blanks":                                 {" \n\n---\n\n", ""},
		"comments, and an object":                {"# one\n---\n---\n" + a, "a"},
		"a directive":                            {"%YAML 1.1\n---\n" + a, "!did not find expected"},
		"null":                                   {a + "---\nnull\n", "!" + none},
		"a tilde":                                {a + "---\n~\n", "!" + none},
		"an empty object":                        {a + "---\n{}\n", "!" + none},
		"an empty array":                         {"[]", "!" + none},
		"an empty text":                          {"''", "!" + none},
		"a text":                                 {"more", "!" + none},
		"a NUL behind it":                        {one + "\x00", "!"},
		"a merge":                                {a + "<<: {x: y}\n", "!merges (<<)"},
		"a List":                                 {"apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems: [" + one + "," + two + "]", "a b"},
		"another list":                           {"apiVersion: v1\nkind: ConfigMapList\nitems: [" + one + "]", "a"},
		"a List with more":                       {"apiVersion: v1\nkind: List\nitems: [" + one + "]\nspec: {x: y}\n", "!it is a list, and has more"},
		"a List with labels":                     {"apiVersion: v1\nkind: List\nmetadata: {labels: {x: y}}\nitems: [" + one + "]\n", "!its metadata is that of an object"},
		"a List whose metadata is a text":        {"apiVersion: v1\nkind: List\nmetadata: x\nitems: [" + one + "]\n", "!its metadata is no object"},
		"a List of a List":                       {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [" + one + "]}]\n", "!it has no metadata.name"},
		"a List without items":                   {"apiVersion: v1\nkind: List\n", "!its items are none"},
		"a List of an object":                    {"apiVersion: v1\nkind: List\nitems: " + one + "\n", "!its items are none"},
		"a List of null":                         {"apiVersion: v1\nkind: List\nitems: [" + one + ", null]\n", "!its items are no objects"},
		"items, and no kind":                     {"items: [" + one + "]\n", "!it has no apiVersion and kind"},
		"an object that has items":               {"apiVersion: x/v1\nkind: Menu\nmetadata: {name: a}\nitems: [" + two + "]\n", "a"},
		"an object whose kind ends in List":      {"apiVersion: x/v1\nkind: AllowList\nmetadata: {name: a}\nitems: [x]\n", "a"},
	} {
		t.Run(about, func(t *testing.T) {
			objects, err := text{[]byte(tt.text), "x", false, false}.decodeObjects(t.Context(), maxObjects)
			var names []string
			for _, o := range objects {
				names = append(names, o.name)
			}
			got := strings.Join(names, " ")
			if err != nil {
				got = err.Error()
			}
			want, refused := strings.CutPrefix(tt.want, "!")
			if refused != (err != nil) || !refused && got != want || !strings.Contains(got, want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if _, err := (text{[]byte(tt.text), "x", true, false}).decodeObjects(t.Context(), maxObjects); refused != (err != nil) {
				t.Errorf("of a Secret: %v", err)
			}
		})
	}
	for text, refused := range map[string]bool{a + b: true, a + "data: {x: y, x: z}\n": false, one + "\n" + two: true} {
		if objects, err := ofChart(text).decodeObjects(t.Context(), maxObjects); (err != nil) != refused {
			t.Errorf("rendered by Helm: %v, %v of %q", objects, err, text)
		}
	}
}

func ofChart(data string) text { return text{[]byte(data), "x", false, true} }

// fuzzWords matches words that JSON conversion keeps or drops with the whole text; ofLists are the
// fields of a list itself.
var (
	fuzzWords = regexp.MustCompile(`[A-Za-z]{5,}`)
	ofLists   = regexp.MustCompile(`(?i)^(items|apiversion|metadata|resourceversion|selflink|continue|remainingitemcount|[a-z]*list)$`)
)

// Each word of an accepted text is in an object, except in comments, directives, tags and escapes.
func FuzzNoInputIsSkipped(f *testing.F) {
	const object = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"alpha\"}}"
	for _, between := range []string{"", "\n", "\r", "\n---\n", "\r\n---\r\n", "\n...\n", ",", "\ufeff", "\n--- ", "\u0085---\u0085", "\u2028---\u2028"} {
		f.Add([]byte(object + between + strings.ReplaceAll(object, "alpha", "bravo")))
		f.Add([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: alpha}\n" + between + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bravo}\n"))
	}
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: [" + object + "]\nbravo: charlie\n"))
	f.Add([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: alpha, <<: {bravo: charlie}}\ndata: {delta: |\n  hotel\n}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) <= 4<<10 && !strings.ContainsAny(string(data), "#%!\\\x00") && !strings.Contains(string(data), "\xff\xfe") && !strings.Contains(string(data), "\xfe\xff") {
			requireComplete(t, data)
		}
	})
}

func requireComplete(t *testing.T, data []byte) {
	t.Helper()
	objects, err := text{data, "x", false, false}.decodeObjects(t.Context(), maxObjects)
	if err != nil {
		return
	}
	var all strings.Builder
	for _, o := range objects {
		fmt.Fprintf(&all, "%s\n", o.body)
	}
	have := strings.ToLower(all.String())
	for _, word := range fuzzWords.FindAllString(string(data), -1) {
		if !strings.Contains(have, strings.ToLower(word)) && !ofLists.MatchString(word) {
			t.Fatalf("%q of %q is in no object: %s", word, data, all.String())
		}
	}
}

func TestLawNoInputIsSkipped(t *testing.T) {
	parts := []string{
		"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"WORD\"}}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: WORD}\n", "apiVersion: v1\nkind: List\nitems: [",
		"\n---\n", "\r\n---\r\n", "---", "\n", "\r", "\r\n", " ", ",", "[", "]", "}", "...", "\n...\n", "\ufeff", "\u0085", "\u2028", "null", "~", "{}", "WORD: WORD\n", "- WORD\n", "'WORD'", "data: {WORD: WORD}\n", "<<: {WORD: WORD}\n", "data: |\n  WORD\n", "? WORD\n",
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var text strings.Builder
		for range 1 + r.IntN(6) {
			part := parts[r.IntN(len(parts))]
			if r.IntN(2) == 0 {
				part = parts[r.IntN(4)]
			}
			for strings.Contains(part, "WORD") {
				word := make([]byte, 6)
				for i := range word {
					word[i] = byte('a' + r.IntN(26)) //nolint:gosec // a letter
				}
				part = strings.Replace(part, "WORD", string(word), 1)
			}
			text.WriteString(part)
		}
		requireComplete(t, []byte(text.String()))
	}
}

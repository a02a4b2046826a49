// SPDX-License-Identifier: Apache-2.0

package requestlog

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// CallsPath serves the call log, one JSON object per line, oldest first. ParseQuery defines its query.
const CallsPath = "/calls"

func serveCalls(log *Log) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f, err := ParseQuery(r.URL.Query(), time.Now())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/jsonlines")
		lines := json.NewEncoder(w)
		for _, c := range log.Select(f) {
			if lines.Encode(c) != nil { // the client has gone
				return
			}
		}
	}
}

// ParseQuery parses a Filter: since is a duration such as 10m, cause is KIND/NAMESPACE/NAME, resource is a
// substring of an ARM ID, failed is true or false.
func ParseQuery(q url.Values, now time.Time) (f Filter, err error) {
	if text := q.Get("since"); text != "" {
		since, err := time.ParseDuration(text)
		if err != nil || since <= 0 {
			return Filter{}, fmt.Errorf("since %q: want a duration such as 10m", text)
		}
		f.Since = now.Add(-since)
	}
	if text := q.Get("cause"); text != "" {
		kind, rest, _ := strings.Cut(text, "/")
		namespace, name, _ := strings.Cut(rest, "/")
		if f.Cause = (Cause{Kind: kind, Namespace: namespace, Name: name}); kind == "" || name == "" {
			return Filter{}, fmt.Errorf("cause %q: want KIND/NAMESPACE/NAME, the namespace empty for all of them", text)
		}
	}
	if text := q.Get("failed"); text != "" {
		if f.Failed, err = strconv.ParseBool(text); err != nil {
			return Filter{}, fmt.Errorf("failed %q: want true or false", text)
		}
	}
	f.Resource = q.Get("resource")
	return f, nil
}

// EncodeQuery is the inverse of ParseQuery, with since in place of f.Since.
func EncodeQuery(f Filter, since time.Duration) url.Values {
	q := url.Values{}
	if since > 0 {
		q.Set("since", since.String())
	}
	if f.Cause != (Cause{}) {
		q.Set("cause", f.Cause.Kind+"/"+f.Cause.Namespace+"/"+f.Cause.Name)
	}
	if f.Resource != "" {
		q.Set("resource", f.Resource)
	}
	if f.Failed {
		q.Set("failed", "true")
	}
	return q
}

// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
)

// leaveContested leaves the public IPs of a Service as they are if they are contested.
func (r *Round) leaveContested(req *Request, nexts []lb.PublicIP, changes []bool) {
	var differ []contest.Undone
	for _, next := range nexts {
		differ = append(differ, undone(r.known[next.ID.Key()], next)...)
	}
	if !r.cfg.Contests.Leave(contest.PublicIPs, req.Service, req.Asked, "its public IPs", differ, time.Now()) {
		return
	}
	for i, next := range nexts {
		if is := r.known[next.ID.Key()]; is.Etag != "" {
			nexts[i], changes[i] = is, false
		}
	}
}

// undone are the differences of a public IP that exists.
func undone(is, shall lb.PublicIP) []contest.Undone {
	var texts []string
	if is.DNSLabel != shall.DNSLabel {
		texts = append(texts, fmt.Sprintf("domainNameLabel %s, Weir wants %s", orNone(is.DNSLabel), orNone(shall.DNSLabel)))
	}
	for _, name := range slices.Sorted(maps.Keys(shall.Tags)) {
		if was := lb.Tag(is.Tags, name); was != shall.Tags[name] {
			texts = append(texts, fmt.Sprintf("tag %s %s, Weir wants %s", name, orNone(was), orNone(shall.Tags[name])))
		}
	}
	if is.Etag == "" || len(texts) == 0 {
		return nil
	}
	what := "public IP " + is.ID.Name
	return []contest.Undone{{Part: strings.ToLower(what), Text: what + ": " + strings.Join(texts, "; ")}}
}

func orNone(text string) string { return cmp.Or(text, "none") }

// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/url"
	"strconv"
	"strings"
)

const rowsPerPage = 200

type poolFilter struct {
	// Find is a substring of a pool, Service, namespace or load balancer name.
	Find            string
	Balancer, Class string
}

func parseFilter(q url.Values) poolFilter {
	return poolFilter{Find: strings.TrimSpace(q.Get("find")), Balancer: q.Get("balancer"), Class: q.Get("is")}
}

func (f poolFilter) filterURL() string {
	q := url.Values{}
	for name, value := range map[string]string{"find": f.Find, "balancer": f.Balancer, "is": f.Class} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return "pools?" + q.Encode()
}

func (f poolFilter) matchesPool(p *poolRow) bool {
	switch {
	case f.Class != "" && f.Class != p.Class, f.Balancer != "" && !strings.EqualFold(f.Balancer, p.Balancer):
		return false
	case f.Find == "":
		return true
	}
	find := strings.ToLower(f.Find)
	for _, value := range []string{p.Namespace + "/" + p.Name, p.Namespace + "/" + p.Service, p.Balancer, p.Pool} {
		if strings.Contains(strings.ToLower(value), find) {
			return true
		}
	}
	return false
}

func (f poolFilter) filterPools(pools []poolRow) []poolRow {
	var chosen []poolRow
	for i := range pools {
		if f.matchesPool(&pools[i]) {
			chosen = append(chosen, pools[i])
		}
	}
	return chosen
}

type listPage[T any] struct {
	All         int
	From, To    int // 1-based numbers of the first and last row
	Shown       []T
	Page, Pages int
	Prev, Next  string // links; empty if there is none
}

// newListPage returns the page that the query requests, clamped to the list; link is the URL of the list.
func newListPage[T any](items []T, q url.Values, link string) listPage[T] {
	page, _ := strconv.Atoi(q.Get("page")) // an invalid page becomes the first
	r := listPage[T]{All: len(items), Pages: max(1, (len(items)+rowsPerPage-1)/rowsPerPage)}
	r.Page = min(max(1, page), r.Pages)
	first := (r.Page - 1) * rowsPerPage
	r.Shown = items[first:min(len(items), first+rowsPerPage)]
	r.From, r.To = first+1, first+len(r.Shown)
	if r.Page > 1 {
		r.Prev = link + "&page=" + strconv.Itoa(r.Page-1)
	}
	if r.Page < r.Pages {
		r.Next = link + "&page=" + strconv.Itoa(r.Page+1)
	}
	return r
}

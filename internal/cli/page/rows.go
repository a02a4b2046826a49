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
	Find         string
	Balancer, Is string
}

func parseFilter(q url.Values) poolFilter {
	return poolFilter{Find: strings.TrimSpace(q.Get("find")), Balancer: q.Get("balancer"), Is: q.Get("is")}
}

func (c poolFilter) filterURL() string {
	q := url.Values{}
	for name, value := range map[string]string{"find": c.Find, "balancer": c.Balancer, "is": c.Is} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return "pools?" + q.Encode()
}

func (c poolFilter) matchesPool(p *poolRow) bool {
	switch {
	case c.Is != "" && c.Is != p.Is, c.Balancer != "" && !strings.EqualFold(c.Balancer, p.Balancer):
		return false
	case c.Find == "":
		return true
	}
	find := strings.ToLower(c.Find)
	for _, value := range []string{p.Namespace + "/" + p.Name, p.Namespace + "/" + p.Service, p.Balancer, p.Pool} {
		if strings.Contains(strings.ToLower(value), find) {
			return true
		}
	}
	return false
}

func (c poolFilter) filterPools(pools []poolRow) []poolRow {
	var chosen []poolRow
	for i := range pools {
		if c.matchesPool(&pools[i]) {
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
func newListPage[T any](all []T, q url.Values, link string) listPage[T] {
	page, _ := strconv.Atoi(q.Get("page")) // an invalid page becomes the first
	r := listPage[T]{All: len(all), Pages: max(1, (len(all)+rowsPerPage-1)/rowsPerPage)}
	r.Page = min(max(1, page), r.Pages)
	first := (r.Page - 1) * rowsPerPage
	r.Shown = all[first:min(len(all), first+rowsPerPage)]
	r.From, r.To = first+1, first+len(r.Shown)
	if r.Page > 1 {
		r.Prev = link + "&page=" + strconv.Itoa(r.Page-1)
	}
	if r.Page < r.Pages {
		r.Next = link + "&page=" + strconv.Itoa(r.Page+1)
	}
	return r
}

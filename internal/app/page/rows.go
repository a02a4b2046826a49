// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/url"
	"strconv"
	"strings"
)

const rowsAtOnce = 200

type choice struct {
	// Find is a substring of a pool, Service, namespace or load balancer name.
	Find         string
	Balancer, Is string
}

func choiceOf(q url.Values) choice {
	return choice{Find: strings.TrimSpace(q.Get("find")), Balancer: q.Get("balancer"), Is: q.Get("is")}
}

func (c choice) link() string {
	q := url.Values{}
	for name, value := range map[string]string{"find": c.Find, "balancer": c.Balancer, "is": c.Is} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return "pools?" + q.Encode()
}

func (c choice) chooses(p *pool) bool {
	switch {
	case c.Is != "" && c.Is != p.Is, c.Balancer != "" && !strings.EqualFold(c.Balancer, p.Balancer):
		return false
	case c.Find == "":
		return true
	}
	find := strings.ToLower(c.Find)
	for _, has := range []string{p.Namespace + "/" + p.Name, p.Namespace + "/" + p.Service, p.Balancer, p.Pool} {
		if strings.Contains(strings.ToLower(has), find) {
			return true
		}
	}
	return false
}

func (c choice) choose(pools []pool) []pool {
	var chosen []pool
	for i := range pools {
		if c.chooses(&pools[i]) {
			chosen = append(chosen, pools[i])
		}
	}
	return chosen
}

type rows[T any] struct {
	All         int
	From, To    int // 1-based numbers of the first and last row
	Shown       []T
	Page, Pages int
	Prev, Next  string // links; empty if there is none
}

// rowsOf returns the page that the query requests, clamped to the list; link is the URL of the list.
func rowsOf[T any](all []T, q url.Values, link string) rows[T] {
	page, _ := strconv.Atoi(q.Get("page")) // an invalid page becomes the first
	r := rows[T]{All: len(all), Pages: max(1, (len(all)+rowsAtOnce-1)/rowsAtOnce)}
	r.Page = min(max(1, page), r.Pages)
	first := (r.Page - 1) * rowsAtOnce
	r.Shown = all[first:min(len(all), first+rowsAtOnce)]
	r.From, r.To = first+1, first+len(r.Shown)
	if r.Page > 1 {
		r.Prev = link + "&page=" + strconv.Itoa(r.Page-1)
	}
	if r.Page < r.Pages {
		r.Next = link + "&page=" + strconv.Itoa(r.Page+1)
	}
	return r
}

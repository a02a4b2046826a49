// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/machinerules"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/words"
)

// Azure checks azure.json and what Azure returns for it.
type Azure struct {
	app.Azure
	// Err is why azure.json cannot be used.
	Err error
	// balancers and ips are nil until they were read.
	balancers []lb.LoadBalancer
	ips       []lb.PublicIP
}

// Broken reports whether Err is set.
func (a *Azure) Broken() bool { return a.Err != nil }

func (a *Azure) checks() []named {
	all := []named{{"azure.json", func(context.Context) []Check { return a.file() }}}
	if a.Broken() {
		return all
	}
	all = append(all, named{"clock of Azure", a.clock},
		named{"load balancers", a.reads("load balancers of resource group "+a.Config.BackendResourceGroup(), func(ctx context.Context) (n int, err error) {
			a.balancers, err = a.Client.ListLoadBalancers(ctx, a.Config.SubscriptionID, a.Config.BackendResourceGroup())
			return len(a.balancers), err
		})},
		named{"public IP addresses", a.reads("public IP addresses of resource group "+a.Config.ResourceGroup, func(ctx context.Context) (int, error) {
			all, err := a.Client.ListPublicIPs(ctx, a.Config.SubscriptionID, a.Config.ResourceGroup)
			if err == nil {
				a.ips = append([]lb.PublicIP{}, all...) // none is known, too
			}
			return len(all), err
		})})
	if group := a.Config.SecurityGroup(); group.Name != "" {
		all = append(all, named{"security group", a.reads("security group "+group.Name, func(ctx context.Context) (int, error) {
			_, err := a.Client.GetSecurityGroup(ctx, group)
			return 1, err
		})})
	}
	all = append(all, named{"limits", func(context.Context) []Check { return a.limits() }}, named{"unused", func(context.Context) []Check { return a.unused() }})
	return append(all, a.actions()...)
}

func (a *Azure) file() []Check {
	switch {
	case a.Err != nil:
		return one(Fail, a.Err.Error(), "docs/reference/azure-json.md has all keys")
	case a.Warning != "":
		return one(Warn, a.Warning, "correct what is misspelt; docs/reference/azure-json.md has all keys")
	}
	return one(OK, a.Config.String(), "")
}

// clock compares the clock of Resource Manager. It sends no credentials.
func (a *Azure) clock(ctx context.Context) []Check {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Endpoint, http.NoBody)
	if err != nil {
		return notAnswered(ctx, err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes, transport.DisableKeepAlives = 64<<10, true
	hc := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	sent := time.Now()
	resp, err := hc.Do(req)
	if err != nil {
		return notAnswered(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // only the header matters
	return []Check{clock("", resp.Header.Get("Date"), sent, time.Since(sent))}
}

func (a *Azure) reads(what string, read func(context.Context) (int, error)) func(context.Context) []Check {
	return func(ctx context.Context) []Check {
		n, err := read(ctx)
		if err == nil {
			return one(OK, fmt.Sprintf("%s: %d", what, n), "")
		}
		if ctx.Err() != nil {
			return notAnswered(ctx, err)
		}
		why := words.OfError(err, time.Now())
		switch fault.From(err).Class {
		case fault.Stale:
			return one(Fail, why, "make it in Azure, or correct its name in azure.json")
		case fault.Terminal:
			return one(Fail, why, "see docs/reference/permissions.md for the permissions of Weir's identity")
		}
		return one(Unknown, why, "check that Azure can be reached from here with the identity of azure.json: a managed identity belongs to the machine")
	}
}

func (a *Azure) limits() []Check {
	if a.balancers == nil {
		return one(Unknown, "the load balancers were not read", "")
	}
	var near []string
	most := a.Config.MostRules()
	for _, b := range a.balancers {
		if len(b.Rules)*10 > most*9 { // same threshold as the alert WeirRulesNearLimit
			near = append(near, fmt.Sprintf("%s has %d of %d rules", b.ID.Name, len(b.Rules), most))
		}
		if len(b.Frontends)*10 > lb.MaxFrontends*9 {
			near = append(near, fmt.Sprintf("%s has %d of %d frontends", b.ID.Name, len(b.Frontends), lb.MaxFrontends))
		}
	}
	if a.Config.Interfaces() {
		var book machinerules.Book
		for _, b := range a.balancers {
			book.Saw(b)
		}
		for name, n := range book.Used() {
			if n*10 > lb.MaxMachineRules*9 {
				near = append(near, fmt.Sprintf("machines behind %s have %d of %d rules", name, n, lb.MaxMachineRules))
			}
		}
	}
	if slices.Sort(near); len(near) > 0 {
		return one(Warn, words.List(near, 5), "docs/runbooks/WeirRulesNearLimit.md")
	}
	return one(OK, fmt.Sprintf("no load balancer has nine tenths of %d rules or of %d frontends", most, lb.MaxFrontends), "")
}

// unused lists the public IPs that were made for Services and that nothing uses, and the frontends that stay only because
// Azure requires them.
func (a *Azure) unused() []Check {
	if a.balancers == nil || a.ips == nil {
		return one(Unknown, "the load balancers and public IP addresses were not read", "")
	}
	var found []string
	for _, ip := range a.ips {
		if ip.UsedBy == "" && publicip.MadeFor(ip, lb.Tag(ip.Tags, service.TagCluster)) != "" {
			of := "a Service that has left it"
			if name := lb.Tag(ip.Tags, service.TagService); name != "" {
				of = "Service " + name
			}
			found = append(found, fmt.Sprintf("public IP %s (%s), made for %s", ip.ID.Name, ip.Address, of))
		}
	}
	for _, b := range a.balancers {
		if name := lb.Tag(b.Tags, plan.TagRetained); name != "" {
			found = append(found, fmt.Sprintf("frontend %s of load balancer %s", name, b.ID.Name))
		}
	}
	if slices.Sort(found); len(found) > 0 {
		return one(Warn, "not in use: "+words.List(found, 5), `docs/guide/services.md, "Take it away", says why each stays, and how it is deleted`)
	}
	return one(OK, "no public IP of a Service is unused, and no frontend stays only because Azure requires it", "")
}

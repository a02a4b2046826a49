// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"weir.dev/weir/internal/app"
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/service"
)

// Azure checks azure.json and what Azure returns for it.
type Azure struct {
	app.Azure
	// Err is why azure.json cannot be used.
	Err error
	// loadBalancers and ips are nil, and group has no etag, until they were read.
	loadBalancers []lb.LoadBalancer
	ips           []lb.PublicIP
	group         lb.SecurityGroup
	// backendPools are the kinds of members that BackendPools add to the pools of all nodes.
	backendPools []service.MemberKind
}

// IsInvalid reports whether Err is set.
func (a *Azure) IsInvalid() bool { return a.Err != nil }

func (a *Azure) allChecks() []namedCheck {
	checks := []namedCheck{{"azure.json", func(context.Context) []Check { return a.checkFile() }}}
	if a.IsInvalid() {
		return checks
	}
	checks = append(checks, namedCheck{"clock of Azure", a.checkClock},
		namedCheck{"load balancers", a.readCheck("load balancers of resource group "+a.Config.BackendResourceGroup(), func(ctx context.Context) (n int, err error) {
			a.loadBalancers, err = a.Client.ListLoadBalancers(ctx, a.Config.NetworkSubscriptionID(), a.Config.BackendResourceGroup())
			return len(a.loadBalancers), err
		})},
		namedCheck{"public IP addresses", a.readCheck("public IP addresses of resource group "+a.Config.ResourceGroup, func(ctx context.Context) (int, error) {
			ips, err := a.Client.ListPublicIPs(ctx, a.Config.NetworkSubscriptionID(), a.Config.ResourceGroup)
			if err == nil {
				a.ips = append([]lb.PublicIP{}, ips...) // none is known, too
			}
			return len(ips), err
		})})
	checks = append(checks, namedCheck{"security group", a.checkSecurityGroup()}, namedCheck{"zones", a.checkZones})
	return append(checks, namedCheck{"limits", func(context.Context) []Check { return a.checkLimits() }}, namedCheck{"limits of the region", a.checkRegionLimits},
		namedCheck{"unused", func(context.Context) []Check { return a.unused() }},
		namedCheck{"retained addresses", func(context.Context) []Check { return a.retainedAddresses() }})
}

func (a *Azure) checkFile() []Check {
	switch {
	case a.Err != nil:
		return singleResult(Fail, a.Err.Error(), "docs/reference/azure-json.md has all keys")
	case a.Warning != "":
		return singleResult(Warn, a.Warning, "correct what is misspelt; docs/reference/azure-json.md has all keys")
	}
	return singleResult(OK, a.Config.String(), "")
}

// checkClock compares the clock of Resource Manager. It sends no credentials.
func (a *Azure) checkClock(ctx context.Context) []Check {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Endpoint, http.NoBody)
	if err != nil {
		return noResponse(ctx, err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes, transport.DisableKeepAlives = 64<<10, true
	hc := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	sent := time.Now()
	resp, err := hc.Do(req)
	if err != nil {
		return noResponse(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // only the header matters
	return []Check{compareClock("", resp.Header.Get("Date"), sent, time.Since(sent))}
}

func (a *Azure) readCheck(resource string, read func(context.Context) (int, error)) func(context.Context) []Check {
	return func(ctx context.Context) []Check {
		n, err := read(ctx)
		if err == nil {
			return singleResult(OK, fmt.Sprintf("%s: %d", resource, n), "")
		}
		if ctx.Err() != nil {
			return noResponse(ctx, err)
		}
		reason := humanize.FormatError(err, time.Now())
		if status.HasNoToken(reason) {
			return singleResult(Fail, reason, status.RemedyFor("AuthenticationFailed")+". A managed identity exists only on its machine: "+
				"kubectl -n weir-system exec deployment/weir-controller -- weir doctor --config /etc/weir/azure.json")
		}
		switch armerror.FromError(err).Class {
		case armerror.Stale:
			return singleResult(Fail, reason, "make it in Azure, or correct its name in azure.json")
		case armerror.Terminal:
			return singleResult(Fail, reason, "see docs/reference/permissions.md for the permissions of Weir's identity")
		}
		return singleResult(Unknown, reason, "check that Azure can be reached from here with the identity of azure.json: a managed identity belongs to the machine")
	}
}

// usesInterfaces reports whether nodes are members of pools by their network interfaces, as the controller decides it: as in
// azure.json, otherwise as in the pools of the cluster's load balancers, then as its BackendPools are.
func (a *Azure) usesInterfaces() bool {
	var kinds, implied []service.MemberKind
	for _, b := range a.loadBalancers {
		if _, ok := service.ConfigurationOf(b.ID.Name, a.Settings.Configurations); ok {
			kinds, implied = append(kinds, a.Settings.NodeMembers(b.Pools)), append(implied, a.Settings.ImpliedMembers(b))
		}
	}
	return a.Settings.UsesInterfaces(slices.Concat(kinds, a.backendPools, implied)...)
}

// unused lists the public IPs that were made for Services and that nothing uses, and the frontends that stay only because
// Azure requires them.
func (a *Azure) unused() []Check {
	if a.loadBalancers == nil || a.ips == nil {
		return singleResult(Unknown, "the load balancers and public IP addresses were not read", "")
	}
	var found []string
	for _, ip := range a.ips {
		if ip.UsedBy == "" && publicip.ManagedOwner(ip, lb.TagValue(ip.Tags, service.TagCluster)) != "" {
			of := "a Service that has left it"
			if name := lb.TagValue(ip.Tags, service.TagService); name != "" {
				of = service.DescribeOwner(name)
			}
			found = append(found, fmt.Sprintf("public IP %s (%s), made for %s", ip.ID.Name, ip.Address, of))
		}
	}
	for _, b := range a.loadBalancers {
		if name := lb.TagValue(b.Tags, plan.TagRetained); name != "" {
			found = append(found, fmt.Sprintf("frontend %s of load balancer %s", name, b.ID.Name))
		}
	}
	if slices.Sort(found); len(found) > 0 {
		return singleResult(Warn, "not in use: "+humanize.FormatList(found, 5), `docs/guide/services.md, "Take it away", lists why each is retained, and how to delete it`)
	}
	return singleResult(OK, "no public IP of a Service is unused, and no frontend is retained only because Azure requires it", "")
}

// retainedAddresses lists the public IPs and private addresses that weir.dev/retain-address keeps.
func (a *Azure) retainedAddresses() []Check {
	if a.loadBalancers == nil || a.ips == nil {
		return singleResult(Unknown, "the load balancers and public IP addresses were not read", "")
	}
	var texts []string
	addresses := publicip.ListRetained(a.ips, "")
	for _, r := range addresses {
		texts = append(texts, r.String())
	}
	for _, b := range a.loadBalancers {
		for _, r := range b.RetainedAddresses() {
			texts = append(texts, fmt.Sprintf("%s of load balancer %s, of %s since %s", r.Address, b.ID.Name, service.DescribeOwner(r.Service), r.Since.UTC().Format(time.RFC3339)))
		}
	}
	if len(texts) == 0 {
		return singleResult(OK, "no address is retained", "")
	}
	return singleResult(OK, fmt.Sprintf("retained: %d public IPs, which Azure bills, and %d private addresses; weir address release gives one up: %s", len(addresses), len(texts)-len(addresses), humanize.FormatList(texts, 5)), "")
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/service"
)

// AddressClient lists, writes and deletes public IPs and load balancers.
type AddressClient interface {
	ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error)
	PutPublicIP(ctx context.Context, ip lb.PublicIP) (lb.PublicIP, error)
	DeletePublicIP(ctx context.Context, ip lb.PublicIP) error
	ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error)
	PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error)
	DeleteLoadBalancer(ctx context.Context, b lb.LoadBalancer) error
}

// AddressCommand works on the retained addresses of one resource group.
type AddressCommand struct {
	Azure                                      AddressClient
	SubscriptionID, ResourceGroup, ClusterName string
	// Settings are those of the cluster's load balancers.
	Settings loadbalancer.Settings
	Out      io.Writer
	JSON     bool
	// DryRun prints what would be written, and writes nothing.
	DryRun bool
	// DeleteLoadBalancer deletes a load balancer on which only pools and probes without rules are left.
	DeleteLoadBalancer bool
}

// addressRow is the JSON form of a retained address.
type addressRow struct {
	Name          string    `json:"name"`
	ResourceGroup string    `json:"resourceGroup"`
	Address       string    `json:"address"`
	LoadBalancer  string    `json:"loadBalancer,omitempty"`
	Cluster       string    `json:"cluster"`
	Service       string    `json:"service"`
	Since         time.Time `json:"since"`
	UsedBy        string    `json:"usedBy,omitempty"`
}

// List prints the retained addresses.
func (c AddressCommand) List(ctx context.Context) error {
	retained, err := c.retained(ctx)
	if err != nil {
		return err
	}
	_, own, err := c.balancers(ctx)
	if err != nil {
		return err
	}
	rows := make([]addressRow, len(retained))
	for i, r := range retained {
		rows[i] = newRow(r)
	}
	rows = append(rows, privateRows(own, c.ClusterName)...)
	if c.JSON {
		return json.NewEncoder(c.Out).Encode(rows)
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(c.Out, "No address of resource group %s is retained for cluster %s (--cluster-name).\n", c.ResourceGroup, c.ClusterName)
		return err
	}
	w := tabwriter.NewWriter(c.Out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tADDRESS\tSERVICE\tSINCE\tIN USE") // errors are those of Flush
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%t\n", r.Name, r.Address, r.Service, r.Since.UTC().Format(time.RFC3339), r.UsedBy != "")
	}
	return w.Flush()
}

// claimedAddress is the JSON form of a claim.
type claimedAddress struct {
	addressRow
	FormerCluster string `json:"formerCluster"`
	FormerService string `json:"formerService"`
	Changed       bool   `json:"changed"`
	DryRun        bool   `json:"dryRun"`
}

// Claim tags a retained public IP for a Service of the cluster; an empty key is the Service's former name. It writes nothing
// if the tags are right already. Of two concurrent claims one fails, because the write carries the etag.
func (c AddressCommand) Claim(ctx context.Context, name, key string) error {
	if private, _ := parsePrivate([]string{name}); len(private) > 0 {
		return c.claimPrivate(ctx, private[0], key)
	}
	ips, err := c.Azure.ListPublicIPs(ctx, c.SubscriptionID, c.ResourceGroup)
	if err != nil {
		return fmt.Errorf("public IPs of resource group %s: %w", c.ResourceGroup, err)
	}
	i := slices.IndexFunc(ips, func(ip lb.PublicIP) bool { return strings.EqualFold(ip.ID.Name, name) })
	if i < 0 {
		return fmt.Errorf("resource group %s has no public IP %s: set --resource-group", c.ResourceGroup, name)
	}
	next, changed, err := publicip.Claim(ips[i], c.ClusterName, key)
	if err != nil {
		return err
	}
	if changed && !c.DryRun {
		if _, err := c.Azure.PutPublicIP(ctx, next); err != nil {
			return fmt.Errorf("public IP %s: %w", name, err)
		}
	}
	old, current := publicip.ListRetained(ips[i:i+1], "")[0], publicip.ListRetained([]lb.PublicIP{next}, "")[0]
	if c.JSON {
		return json.NewEncoder(c.Out).Encode(claimedAddress{newRow(current), old.Cluster, old.Service, changed, c.DryRun})
	}
	_, err = fmt.Fprintf(c.Out, "public IP %s (%s) %s for %s of cluster %s; it was of %s of cluster %s\n", current.ID.Name, current.Address, c.claimVerb(changed), service.DescribeOwner(current.Service), current.Cluster, service.DescribeOwner(old.Service), old.Cluster)
	return err
}

func (c AddressCommand) claimVerb(changed bool) string {
	switch {
	case !changed:
		return "is claimed already"
	case c.DryRun:
		return "would be claimed"
	}
	return "claimed"
}

func newRow(r publicip.Retained) addressRow {
	return addressRow{Name: r.ID.Name, ResourceGroup: r.ID.ResourceGroup, Address: r.Address.String(), Cluster: r.Cluster, Service: r.Service, Since: r.Since, UsedBy: r.UsedBy}
}

// Release deletes retained public IPs by name, and private addresses. It releases none if one is not retained or in use.
func (c AddressCommand) Release(ctx context.Context, names []string) error {
	private, public := parsePrivate(names)
	if len(private) > 0 {
		_, own, err := c.balancers(ctx)
		if err != nil {
			return err
		}
		if err := c.checkPrivate(own, private); err != nil {
			return err
		}
	}
	if err := c.releasePublic(ctx, public); err != nil {
		return err
	}
	slices.SortFunc(private, func(a, b netip.Addr) int { return b.Compare(a) }) // with IPv6 frontends Azure requires one of IPv4
	for _, addr := range private {
		if err := c.releasePrivate(ctx, addr); err != nil {
			return err
		}
	}
	return nil
}

func (c AddressCommand) releasePublic(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	retained, err := c.retained(ctx)
	if err != nil {
		return err
	}
	var due []publicip.Retained
	for _, name := range names {
		found := false
		for _, r := range retained {
			if !strings.EqualFold(r.ID.Name, name) {
				continue
			}
			if r.UsedBy != "" {
				return fmt.Errorf("public IP %s is in use by %s: delete its Service first; nothing was released", name, r.UsedBy)
			}
			due, found = append(due, r), true
		}
		if !found {
			return fmt.Errorf("no public IP %s of resource group %s is retained for cluster %s: weir address list has all; nothing was released", name, c.ResourceGroup, c.ClusterName)
		}
	}
	for _, r := range due {
		if err := c.Azure.DeletePublicIP(ctx, r.PublicIP); err != nil {
			return fmt.Errorf("public IP %s: %w", r.ID.Name, err)
		}
		if _, err := fmt.Fprintf(c.Out, "public IP %s (%s) released\n", r.ID.Name, r.Address); err != nil {
			return err
		}
	}
	return nil
}

func (c AddressCommand) retained(ctx context.Context) ([]publicip.Retained, error) {
	ips, err := c.Azure.ListPublicIPs(ctx, c.SubscriptionID, c.ResourceGroup)
	if err != nil {
		return nil, fmt.Errorf("public IPs of resource group %s: %w", c.ResourceGroup, err)
	}
	return publicip.ListRetained(ips, c.ClusterName), nil
}

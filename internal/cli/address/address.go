// SPDX-License-Identifier: Apache-2.0

// Package address lists, releases and claims retained public IPs.
package address

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/publicip"
)

// Azure lists, writes and deletes public IPs.
type Azure interface {
	ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error)
	PutPublicIP(ctx context.Context, ip lb.PublicIP) (lb.PublicIP, error)
	DeletePublicIP(ctx context.Context, ip lb.PublicIP) error
}

// Command works on the retained public IPs of one resource group.
type Command struct {
	Azure                                      Azure
	SubscriptionID, ResourceGroup, ClusterName string
	Out                                        io.Writer
	JSON                                       bool
	// DryRun prints what would be written, and writes nothing.
	DryRun bool
}

// row is the JSON form of a retained public IP.
type row struct {
	Name          string    `json:"name"`
	ResourceGroup string    `json:"resourceGroup"`
	Address       string    `json:"address"`
	Cluster       string    `json:"cluster"`
	Service       string    `json:"service"`
	Since         time.Time `json:"since"`
	UsedBy        string    `json:"usedBy,omitempty"`
}

// List prints the retained public IPs.
func (c Command) List(ctx context.Context) error {
	all, err := c.retained(ctx)
	if err != nil {
		return err
	}
	rows := make([]row, len(all))
	for i, r := range all {
		rows[i] = newRow(r)
	}
	if c.JSON {
		return json.NewEncoder(c.Out).Encode(rows)
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(c.Out, "No public IP of resource group %s is retained.\n", c.ResourceGroup)
		return err
	}
	w := tabwriter.NewWriter(c.Out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tADDRESS\tSERVICE\tSINCE\tIN USE") // errors are those of Flush
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%t\n", r.Name, r.Address, r.Service, r.Since.UTC().Format(time.RFC3339), r.UsedBy != "")
	}
	return w.Flush()
}

// claimed is the JSON form of a claim.
type claimed struct {
	row
	FormerCluster string `json:"formerCluster"`
	FormerService string `json:"formerService"`
	Changed       bool   `json:"changed"`
	DryRun        bool   `json:"dryRun"`
}

// Claim tags a retained public IP for a Service of the cluster; an empty key is the Service's former name. It writes nothing
// if the tags are right already. Of two concurrent claims one fails, because the write carries the etag.
func (c Command) Claim(ctx context.Context, name, key string) error {
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
	was, is := publicip.ListRetained(ips[i:i+1], "")[0], publicip.ListRetained([]lb.PublicIP{next}, "")[0]
	if c.JSON {
		return json.NewEncoder(c.Out).Encode(claimed{newRow(is), was.Cluster, was.Service, changed, c.DryRun})
	}
	verb := "claimed"
	switch {
	case !changed:
		verb = "is claimed already"
	case c.DryRun:
		verb = "would be claimed"
	}
	_, err = fmt.Fprintf(c.Out, "public IP %s (%s) %s for Service %s of cluster %s; it was of Service %s of cluster %s\n", is.ID.Name, is.Address, verb, is.Service, is.Cluster, was.Service, was.Cluster)
	return err
}

func newRow(r publicip.Retained) row {
	return row{r.ID.Name, r.ID.ResourceGroup, r.Address.String(), r.Cluster, r.Service, r.Since, r.UsedBy}
}

// Release deletes retained public IPs by name. It deletes none if one is not retained or in use.
func (c Command) Release(ctx context.Context, names []string) error {
	all, err := c.retained(ctx)
	if err != nil {
		return err
	}
	var due []publicip.Retained
	for _, name := range names {
		found := false
		for _, r := range all {
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

func (c Command) retained(ctx context.Context) ([]publicip.Retained, error) {
	ips, err := c.Azure.ListPublicIPs(ctx, c.SubscriptionID, c.ResourceGroup)
	if err != nil {
		return nil, fmt.Errorf("public IPs of resource group %s: %w", c.ResourceGroup, err)
	}
	return publicip.ListRetained(ips, c.ClusterName), nil
}

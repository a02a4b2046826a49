// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/publicip"
)

const (
	// PublicIPsName is separate from Name because it grows with the number of public IPs.
	PublicIPsName = "weir-public-ips"
	keyOwners     = "owners"
)

// PublicIPOwners stores the owners of public IPs, one "id namespace time" per line. It implements
// publicip.OwnerStore.
type PublicIPOwners struct {
	Reader client.Reader
	// Writer must be the leader's fenced writer.
	Writer    client.Writer
	Namespace string
}

// ReadOwners implements publicip.OwnerStore.
func (p PublicIPOwners) ReadOwners(ctx context.Context) (r publicip.OwnerRecord, err error) {
	r.Version, err = p.configMapTable().readTable(ctx, p.Reader, func(text string) (err error) {
		r.Owners, err = parseOwners(text)
		return err
	})
	return r, err
}

// WriteOwners implements publicip.OwnerStore.
func (p PublicIPOwners) WriteOwners(ctx context.Context, r publicip.OwnerRecord) (string, error) {
	return p.configMapTable().writeTable(ctx, p.Writer, r.Version, formatOwners(r.Owners), fmt.Sprintf("%d public IPs", len(r.Owners)), "delete public IPs that are not used")
}

func (p PublicIPOwners) configMapTable() table { return table{p.Namespace, PublicIPsName, keyOwners} }

func parseOwners(text string) (map[string]publicip.Owner, error) {
	owners := map[string]publicip.Owner{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("line %d is %.200q: want the id of a public IP, a namespace and a time", number, line)
		}
		id, err := lb.ParseResourceID(fields[0], lb.TypePublicIP)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		since, err := time.Parse(time.RFC3339, fields[2])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		owners[id.Key()] = publicip.Owner{Namespace: fields[1], Since: since.UTC()}
	}
	return owners, nil
}

func formatOwners(owners map[string]publicip.Owner) string {
	var text strings.Builder
	for _, id := range slices.Sorted(maps.Keys(owners)) {
		fmt.Fprintf(&text, "%s %s %s\n", id, owners[id].Namespace, owners[id].Since.UTC().Format(time.RFC3339))
	}
	return text.String()
}

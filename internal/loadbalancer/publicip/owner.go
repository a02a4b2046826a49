// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Owner is the namespace that last used a public IP.
type Owner struct {
	Namespace string
	Since     time.Time
}

// OwnerRecord is the persisted owners of public IPs.
type OwnerRecord struct {
	// Version is opaque; writing with an outdated version fails.
	Version string
	// Owners are by the key of the public IP.
	Owners map[string]Owner
}

// OwnerStore persists the owners. Only the leader writes.
type OwnerStore interface {
	// ReadOwners returns no Version if there is no record.
	ReadOwners(ctx context.Context) (OwnerRecord, error)
	// WriteOwners writes the owners and returns the new version.
	WriteOwners(ctx context.Context, r OwnerRecord) (version string, err error)
}

// ownerTimeout limits one read or write of the record. Rounds of other load balancers wait for it.
const ownerTimeout = 10 * time.Second

// pruneAfter is how long lists must omit a public IP before its owner is removed. A single list may be
// incomplete.
const pruneAfter = 10 * time.Minute

const maxNamed = 10

// owners caches the record. A nil map must be read.
type owners struct {
	slot   chan struct{} // held by the deciding round, also across API server calls
	record OwnerRecord
	// missingSince is since when lists omit a recorded public IP, by key.
	missingSince map[string]time.Time
}

// loadRecord reads the record unless it is cached. The caller holds the lock.
func (o *owners) loadRecord(ctx context.Context, store OwnerStore) error {
	if o.record.Owners != nil {
		return nil
	}
	if store == nil {
		o.record.Owners = map[string]Owner{}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	record, err := store.ReadOwners(ctx)
	if err != nil {
		return fmt.Errorf("the owners of public IPs cannot be read: %w", err)
	}
	if record.Owners == nil {
		record.Owners = map[string]Owner{}
	}
	o.record = record
	return nil
}

// saveRecord writes changed owners; an empty Owner deletes. After a failure the record is read again, because the
// write may have succeeded. The caller holds the lock.
func (o *owners) saveRecord(ctx context.Context, store OwnerStore, changed map[string]Owner) error {
	next := OwnerRecord{Version: o.record.Version, Owners: maps.Clone(o.record.Owners)}
	for key, owner := range changed {
		if next.Owners[key] = owner; owner == (Owner{}) {
			delete(next.Owners, key)
		}
	}
	if store != nil && !maps.Equal(next.Owners, o.record.Owners) {
		ctx, cancel := context.WithTimeout(ctx, ownerTimeout)
		defer cancel()
		version, err := store.WriteOwners(ctx, next)
		if err != nil {
			o.record = OwnerRecord{}
			return fmt.Errorf("the owners of public IPs cannot be written: %w", err)
		}
		next.Version = version
	}
	o.record = next
	return nil
}

// usage holds the facts that decide whether a Service may use a public IP that Weir did not make.
type usage struct {
	ip        lb.PublicIP
	namespace string
	// user is the namespace of the Service at its frontend; empty if it is free.
	user  string
	owner Owner
	// isAbandoned is set if its Service left it but a frontend still has it.
	isAbandoned bool
	pending     bool
	ownerErr    error
	grant       service.PublicIPGrant
	invalid     error
}

// checkUse returns whether the namespace must be recorded as owner before the public IP is used, or why a Service
// may not use it. Use by another namespace is rejected by the load balancer's plan, which knows the existing
// sharing.
func (u usage) checkUse() (claims bool, err error) {
	switch {
	case u.user != "":
		return false, nil // by its own namespace, which is recorded as its user, or by another one
	case u.isAbandoned:
		return false, nil // the plan knows the owner of the frontend, and Weir deletes it afterwards
	case u.ownerErr != nil:
		return false, fmt.Errorf("public IP %s is given to no Service that does not have it already: %w", u.ip.ID.Name, u.ownerErr)
	case u.grant.FromTag && !u.grant.Use:
		return false, fmt.Errorf("public IP %s is not for namespace %s, by its tag %s. Choose another public IP, or %s", u.ip.ID.Name, u.namespace, service.NamespacesTag, u.remedyText())
	case u.owner.Namespace == u.namespace:
		return u.pending, nil
	case u.owner.Namespace == "" || u.grant.Use:
		return true, nil
	}
	return false, fmt.Errorf("public IP %s belongs to namespace %s, which has used it since %s. Choose another public IP, or %s",
		u.ip.ID.Name, u.owner.Namespace, u.owner.Since.UTC().Format(time.RFC3339), u.remedyText())
}

func (u usage) remedyText() string {
	text := fmt.Sprintf("have an administrator add %s/%s to the annotation %s of Namespace %s", u.ip.ID.ResourceGroup, u.ip.ID.Name, service.PublicIPAnnotation, u.namespace)
	if u.grant.FromTag {
		text = fmt.Sprintf("have an administrator add %s to the tag %s of the public IP", u.namespace, service.NamespacesTag)
	}
	if u.invalid != nil {
		text += fmt.Sprintf(" (%s)", u.invalid)
	}
	return text
}

func (u usage) labelError(label string) error {
	return fmt.Errorf("public IP %s has DNS label %s, and %s requests %s. The DNS label of a public IP that Weir did not create changes only with a grant. Remove that annotation, or %s",
		u.ip.ID.Name, orNone(u.ip.DNSLabel), service.DNSLabel, orNone(label), u.remedyText())
}

func (c *Config) isManaged(ip lb.PublicIP) bool { return ManagedOwner(ip, c.ClusterName) != "" }

func (c *Config) frontendOf(ip lb.PublicIP) string {
	for _, id := range c.LoadBalancers {
		if on := id.String() + "/frontendIPConfigurations/"; hasPrefixFold(ip.UsedBy, on) {
			return ip.UsedBy[len(on):]
		}
	}
	return ""
}

// userOf returns the namespace at the frontend of a public IP; empty if unknown.
func (r *Round) userOf(ip lb.PublicIP) string {
	if frontend := r.cfg.frontendOf(ip); frontend != "" {
		return namespaceOf(r.serviceOf()(frontend))
	}
	return ""
}

func namespaceOf(service string) string {
	namespace, _, _ := strings.Cut(service, "/")
	return namespace
}

func (r *Round) usageOf(ip lb.PublicIP, req *Request) usage {
	key := ip.ID.Key()
	u := usage{ip: ip, namespace: namespaceOf(req.Service), user: r.userOf(ip), owner: retainedOwner(ip, r.owners[key]), ownerErr: r.ownersErr}
	if hasPrefixFold(r.cfg.frontendOf(ip), req.Owner) {
		u.user = u.namespace
	}
	u.isAbandoned = r.cfg.isOrphan(ip) && r.cfg.frontendOf(ip) != ""
	if c := r.claims[key]; c != nil {
		u.owner, u.pending = c.owner, true
	}
	u.grant, u.invalid = r.cfg.grantOf(ip, u.namespace)
	return u
}

func (c *Config) grantOf(ip lb.PublicIP, namespace string) (service.PublicIPGrant, error) {
	annotation := ""
	if c.GrantsOf != nil {
		annotation = c.GrantsOf(namespace)
	}
	return service.EvaluatePublicIP(namespace, annotation, c.Group, ip.ID, ip.Tags)
}

// canLabel reports whether the Service may change the DNS label: Weir made the public IP for its namespace, or
// an administrator granted it.
func (r *Round) canLabel(u usage) bool {
	return u.grant.Label || r.cfg.isManaged(u.ip) && hasNamespaceTag(u.ip, u.namespace)
}

func (m *Manager) ownersNow(ctx context.Context) (map[string]Owner, error) {
	m.owners.slot <- struct{}{}
	defer func() { <-m.owners.slot }()
	err := m.owners.loadRecord(ctx, m.cfg.Owners)
	return m.owners.record.Owners, err
}

// ownerText describes a public IP that a Service may not name as an additional address because another
// namespace owns it; empty if it may.
func (c *Config) ownerText(ip lb.PublicIP, key string, spec *service.Spec, owned map[string]Owner) string {
	owner, namespace := retainedOwner(ip, owned[ip.ID.Key()]).Namespace, namespaceOf(key)
	if owner == "" || owner == namespace || MayUse(spec, ip) {
		return ""
	}
	if granted, _ := c.grantOf(ip, namespace); granted.Use {
		return ""
	}
	return "public IP " + ip.ID.Name + ", which belongs to namespace " + owner
}

// claim is a change of the owner of a public IP, with the requests that depend on it.
type claim struct {
	owner Owner
	by    []*Request
}

func (r *Round) claimOwner(ip lb.PublicIP, req *Request) {
	key := ip.ID.Key()
	c := r.claims[key]
	if c == nil {
		c = &claim{owner: Owner{namespaceOf(req.Service), time.Now().UTC().Truncate(time.Second)}}
		r.claims[key] = c
	}
	c.by = append(c.by, req)
}

// pickAll selects the public IPs of all requests, oldest Service first, and records new owners. Only one round
// at a time does this.
func (r *Round) pickAll(ctx context.Context, o *owners, requests []*Request) {
	o.slot <- struct{}{}
	defer func() { <-o.slot }()
	users := r.usersByKey()
	if names := slices.ContainsFunc(requests, (*Request).namesPublicIP); names || len(users) > 0 || r.hasRetained() {
		first := o.record.Owners == nil
		r.ownersErr = o.loadRecord(ctx, r.cfg.Owners)
		if first && r.ownersErr == nil && r.cfg.Owners != nil && o.record.Version == "" {
			r.warnFree()
		}
	}
	r.owners, r.claims = o.record.Owners, map[string]*claim{}
	requests = slices.SortedStableFunc(slices.Values(requests), func(a, b *Request) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Owner, b.Owner))
	})
	for _, req := range requests {
		if req.Err == nil && req.Desired != nil && !req.IsLeaving {
			r.pickPublicIPs(ctx, req)
			r.releaseLabel(req, r.first)
		}
	}
	if r.ownersErr != nil {
		return
	}
	if err := o.saveRecord(ctx, r.cfg.Owners, r.changedOwners(users, o.prunableKeys(r))); err != nil {
		r.cfg.Log.WarnContext(ctx, "public IPs that Weir did not make go to no other Service until their owners can be recorded", "err", err)
		for _, c := range r.claims {
			for _, req := range c.by {
				req.Err = err
			}
		}
		return
	}
	r.owners, r.claims = o.record.Owners, nil
}

// usersByKey returns the namespaces that use public IPs that Weir did not make, by key.
func (r *Round) usersByKey() map[string]string {
	users := map[string]string{}
	for key, ip := range r.known {
		if ip.UsedBy == "" || r.cfg.isManaged(ip) {
			continue
		}
		if user := r.userOf(ip); user != "" {
			users[key] = user
		}
	}
	return users
}

// changedOwners returns the owners that differ from the record: public IPs in use, newly assigned, or missing
// in Azure.
func (r *Round) changedOwners(users map[string]string, pruned []string) map[string]Owner {
	changed := map[string]Owner{}
	for key, user := range users {
		if r.owners[key].Namespace != user {
			changed[key] = Owner{user, time.Now().UTC().Truncate(time.Second)}
		}
	}
	for key, c := range r.claims {
		if slices.ContainsFunc(c.by, func(req *Request) bool { return req.Err == nil }) {
			changed[key] = c.owner
		}
	}
	for _, key := range pruned {
		changed[key] = Owner{}
	}
	return changed
}

// prunableKeys returns the keys that lists have omitted for pruneAfter. The caller holds the lock.
func (o *owners) prunableKeys(r *Round) []string {
	omitted, pruned := map[string]time.Time{}, []string{}
	for key := range r.owners {
		since := o.missingSince[key]
		if id, err := lb.ParseResourceID(key, lb.TypePublicIP); err == nil && r.listedGroups[resourceGroup(id).Key()] {
			if _, exists := r.known[key]; exists {
				continue
			}
			if since.IsZero() {
				since = time.Now()
			}
			if time.Since(since) >= pruneAfter {
				pruned = append(pruned, key)
			}
		}
		if !since.IsZero() {
			omitted[key] = since
		}
	}
	o.missingSince = omitted
	return pruned
}

// warnFree warns that there is no record: the first namespace that names a free public IP gets it.
func (r *Round) warnFree() {
	var free []string
	for _, key := range slices.Sorted(maps.Keys(r.known)) {
		if ip := r.known[key]; ip.UsedBy == "" && !r.cfg.isManaged(ip) && len(free) < maxNamed {
			free = append(free, ip.ID.Name)
		}
	}
	if len(free) > 0 {
		r.cfg.Log.Warn("there is no record of the namespaces that own public IPs: an unused public IP belongs to the first namespace that names it. "+
			"If the record was lost, reserve public IPs with the tag "+service.NamespacesTag, "free", strings.Join(free, ", "))
	}
}

func (req *Request) namesPublicIP() bool {
	return req.Desired != nil && slices.ContainsFunc(req.Desired.Frontends, func(f service.Frontend) bool { return f.PublicIP != nil && isUserProvided(*f.PublicIP) })
}

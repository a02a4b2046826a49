// SPDX-License-Identifier: Apache-2.0

package probe

import "context"

// checkLabelFamilies creates a public IP of each family with one DNS label, as a dual-stack Service would need them.
func (r *run) checkLabelFamilies(ctx context.Context) error {
	if err := r.createResource(ctx, "public IP", r.publicIPPath("IPv4"), r.publicIPBody("IPv4")); err != nil {
		return err
	}
	id := r.publicIPPath("IPv6")
	w, err := r.writeAndWait(ctx, "", newWrite(id, r.publicIPBody("IPv6")))
	if err != nil {
		return err
	}
	label, details := "", ""
	if w.isSucceeded() {
		ip, err := r.readResource(ctx, id)
		if err != nil {
			return err
		}
		label = stringValue(childObject(propertiesOf(ip), "dnsSettings"), "domainNameLabel")
		details = "then its label is " + label
	}
	r.recordEvent("PUT of an IPv6 public IP with the DNS label of an IPv4 one", w, details, labelFamilies)
	a, reason := labelResult(w, r.GroupName(), label)
	r.recordResult(labelFamilies, a, reason)
	return nil
}

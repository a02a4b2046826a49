// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"path"
	"strings"
)

func reference(id string) Object { return Object{"id": id} }

func (r *run) newResource(properties Object) Object {
	return Object{"location": r.Location, "tags": r.tags, "properties": properties}
}

func (r *run) groupBody() Object { return Object{"location": r.Location, "tags": r.tags} }

func (r *run) virtualNetworkBody() Object {
	return r.newResource(Object{
		"addressSpace": Object{"addressPrefixes": []any{networkPrefix}},
		"subnets": []any{Object{"name": path.Base(r.subnetPath()), "properties": Object{
			"addressPrefix": networkPrefix, "networkSecurityGroup": reference(r.securityGroupPath()),
		}}},
	})
}

func (r *run) loadBalancerBody(name string, pool Object) Object {
	id := r.loadBalancer(name)
	body := r.newResource(Object{
		"frontendIPConfigurations": []any{Object{"name": "front", "properties": Object{
			"subnet": reference(r.subnetPath()), "privateIPAllocationMethod": "Dynamic",
		}}},
		"backendAddressPools": []any{Object{"name": membersPool, "properties": pool}},
		"probes":              []any{Object{"name": "ssh", "properties": Object{"protocol": "Tcp", "port": 22, "intervalInSeconds": 5, "probeThreshold": 2}}},
		"loadBalancingRules": []any{Object{"name": "web", "properties": Object{
			"frontendIPConfiguration": reference(id + "/frontendIPConfigurations/front"),
			"backendAddressPool":      reference(id + "/backendAddressPools/" + membersPool),
			"probe":                   reference(id + "/probes/ssh"),
			"protocol":                "Tcp", "frontendPort": 80, "backendPort": 80, "idleTimeoutInMinutes": 4, "disableOutboundSnat": true,
		}}},
	})
	body["sku"] = Object{"name": "Standard"}
	return body
}

func (p place) poolProperties(list []member) Object {
	return Object{"virtualNetwork": reference(p.virtualNetworkPath()), addressesKey: toEntries(list)}
}

func (p place) poolBody(list []member) Object { return Object{"properties": p.poolProperties(list)} }

func (r *run) nicBody(ip string, pools ...string) Object {
	config := Object{
		"subnet": reference(r.subnetPath()), "primary": true,
		"privateIPAllocationMethod": "Static", "privateIPAddress": ip,
	}
	joined := []any{}
	for _, id := range pools {
		joined = append(joined, reference(id))
	}
	if len(joined) > 0 {
		config["loadBalancerBackendAddressPools"] = joined
	}
	return r.newResource(Object{"ipConfigurations": []any{Object{"name": "main", "properties": config}}})
}

// publicIPBody has a DNS label that is unique, like the group's name.
func (r *run) publicIPBody(family string) Object {
	body := r.newResource(Object{
		"publicIPAllocationMethod": "Static", "publicIPAddressVersion": family,
		"dnsSettings": Object{"domainNameLabel": r.GroupName()},
	})
	body["sku"] = Object{"name": "Standard"}
	return body
}

func (r *run) machineBody(kind string) Object {
	image := strings.Split(r.Image, ":")
	name := path.Base(r.machinePath(kind))
	return r.newResource(Object{
		"hardwareProfile": Object{"vmSize": r.VMSize},
		"storageProfile": Object{
			"imageReference": Object{"publisher": image[0], "offer": image[1], "sku": image[2], "version": image[3]},
			"osDisk": Object{
				"createOption": "FromImage", "deleteOption": "Delete", "managedDisk": Object{"storageAccountType": "Standard_LRS"},
			},
		},
		"osProfile": Object{
			"computerName": name, "adminUsername": "weirprobe",
			"linuxConfiguration": Object{"disablePasswordAuthentication": true, "ssh": Object{
				"publicKeys": []any{Object{"path": "/home/weirprobe/.ssh/authorized_keys", "keyData": r.Key}},
			}},
		},
		"networkProfile": Object{"networkInterfaces": []any{
			Object{"id": r.interfacePath(kind), "properties": Object{"primary": true, "deleteOption": "Delete"}},
		}},
	})
}

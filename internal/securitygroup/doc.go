// SPDX-License-Identifier: Apache-2.0

// Package securitygroup keeps the network security group of the nodes: it admits whom the
// Services of the cluster say, and nobody else, all Services that are due in one write.
//
//	ports.go       what is asked of Azure and of the cluster
//	request.go     what a Service asks for, what came of it, and why it may be refused at once
//	write.go       one write: read, survey, plan, write, check
//	bounds.go      which Services the group would refuse, before anything is made for them
//	survey.go      what all Services of the cluster ask for, those that are not due included
//	additional.go  whose the further addresses are that Services name
//	tags.go        what is written where Azure may not know a service tag
//	former.go      addresses that Services had, until the group is closed there
//	contested.go   which rules somebody else keeps changing back
//
// Nothing is tried again here, but for a write that somebody else overtook.
package securitygroup

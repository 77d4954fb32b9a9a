// Package bundle turns a bundle.hcl into an artifact, in steps that each do one
// thing:
//
//	config.LoadBundle  bundle.hcl           -> what is wanted
//	Inspect            folders              -> Inventory: names, sizes, headers; weights are read only to be packed
//	MakePlan           wanted + Inventory   -> Plan: every file of the artifact, its layer, and why
//	Seal               Plan                 -> Sealed: digests, manifest; each source read once
//	WriteFolder, WriteLayout, content.Copy  -> a submission folder, an OCI layout, a registry
//
// Only Inspect and what follows MakePlan touch a disk, and only sources are
// read: no user's file is ever written to, linked into a place where it could
// be, or given another mode. The same input gives the same manifest digest
// whatever the clock, umask, owner, folder, directory order or number of cores.
package bundle

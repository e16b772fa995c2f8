#!/usr/bin/env bash
# Says so if nobody has said where images go.
if [ -z "${KO_DOCKER_REPO:-}" ]; then
	echo "Set KO_DOCKER_REPO to where the images may be pushed and the cluster can pull them from" >&2
	exit 1
fi

"""The messages of 9P2000, 9P2000.u and 9P2000.L, each with its layout as the manual draws it.

All requests are here, and the replies that a server which never writes gives. Where dialects lay a message
out differently it has a class for each (`Tattach`, `TattachU`) and one number. Pure: tables only.
Sources: section 5 of Plan 9's manual; the 9P2000.u draft of Van Hensbergen; for .L the protocol page of
diod and what Linux's v9fs sends.
"""

from typing import NamedTuple

from davserver.ninep.wire import (
    U8,
    U16,
    U32,
    U64,
    Data,
    Name,
    Names,
    QidBytes,
    Qids,
    StatData,
    String,
    message,
)

NOTAG = 0xFFFF
NOFID = 0xFFFFFFFF
O_ACCMODE, O_TRUNC = 0o3, 0o1000
"""Flags of Tlopen: Linux's. The others that v9fs sends (O_LARGEFILE, O_DIRECTORY) change nothing here; nor
does O_CREAT, which flock(1) adds: what can be opened is there already."""

# --- all dialects ---


@message(100)
class Tversion(NamedTuple):
    """size[4] Tversion tag[2] msize[4] version[s]"""

    tag: U16
    msize: U32
    version: String


@message(101)
class Rversion(NamedTuple):
    """size[4] Rversion tag[2] msize[4] version[s]"""

    tag: U16
    msize: U32
    version: String


@message(108)
class Tflush(NamedTuple):
    """size[4] Tflush tag[2] oldtag[2]"""

    tag: U16
    oldtag: U16


@message(109)
class Rflush(NamedTuple):
    """size[4] Rflush tag[2]"""

    tag: U16


@message(105)
class Rattach(NamedTuple):
    """size[4] Rattach tag[2] qid[13]"""

    tag: U16
    qid: QidBytes


@message(110)
class Twalk(NamedTuple):
    """size[4] Twalk tag[2] fid[4] newfid[4] nwname[2] nwname*(wname[s])"""

    tag: U16
    fid: U32
    newfid: U32
    wname: Names


@message(111)
class Rwalk(NamedTuple):
    """size[4] Rwalk tag[2] nwqid[2] nwqid*(wqid[13])"""

    tag: U16
    wqid: Qids


@message(116)
class Tread(NamedTuple):
    """size[4] Tread tag[2] fid[4] offset[8] count[4]"""

    tag: U16
    fid: U32
    offset: U64
    count: U32  # type: ignore[assignment]  # the manual's word, and a method of tuples


@message(117)
class Rread(NamedTuple):
    """size[4] Rread tag[2] count[4] data[count]"""

    tag: U16
    data: Data


@message(118)
class Twrite(NamedTuple):
    """size[4] Twrite tag[2] fid[4] offset[8] count[4] data[count]"""

    tag: U16
    fid: U32
    offset: U64
    data: Data


@message(120)
class Tclunk(NamedTuple):
    """size[4] Tclunk tag[2] fid[4]"""

    tag: U16
    fid: U32


@message(121)
class Rclunk(NamedTuple):
    """size[4] Rclunk tag[2]"""

    tag: U16


@message(122)
class Tremove(NamedTuple):
    """size[4] Tremove tag[2] fid[4]"""

    tag: U16
    fid: U32


# --- 9P2000, and 9P2000.u where nothing else is said ---


@message(102)
class Tauth(NamedTuple):
    """size[4] Tauth tag[2] afid[4] uname[s] aname[s]"""

    tag: U16
    afid: U32
    uname: String
    aname: String


@message(104)
class Tattach(NamedTuple):
    """size[4] Tattach tag[2] fid[4] afid[4] uname[s] aname[s]"""

    tag: U16
    fid: U32
    afid: U32
    uname: String
    aname: String


@message(107)
class Rerror(NamedTuple):
    """size[4] Rerror tag[2] ename[s]"""

    tag: U16
    ename: String


@message(112)
class Topen(NamedTuple):
    """size[4] Topen tag[2] fid[4] mode[1]"""

    tag: U16
    fid: U32
    mode: U8


@message(113)
class Ropen(NamedTuple):
    """size[4] Ropen tag[2] qid[13] iounit[4]"""

    tag: U16
    qid: QidBytes
    iounit: U32


@message(114)
class Tcreate(NamedTuple):
    """size[4] Tcreate tag[2] fid[4] name[s] perm[4] mode[1]"""

    tag: U16
    fid: U32
    name: Name
    perm: U32
    mode: U8


@message(124)
class Tstat(NamedTuple):
    """size[4] Tstat tag[2] fid[4]"""

    tag: U16
    fid: U32


@message(125)
class Rstat(NamedTuple):
    """size[4] Rstat tag[2] nstat[2] stat[nstat]"""

    tag: U16
    stat: StatData


@message(126)
class Twstat(NamedTuple):
    """size[4] Twstat tag[2] fid[4] nstat[2] stat[nstat]"""

    tag: U16
    fid: U32
    stat: StatData


@message(127)
class Rwstat(NamedTuple):
    """size[4] Rwstat tag[2]"""

    tag: U16


# --- 9P2000.u; its Tauth and Tattach are .L's too ---


@message(102)
class TauthU(NamedTuple):
    """size[4] Tauth tag[2] afid[4] uname[s] aname[s] n_uname[4]"""

    tag: U16
    afid: U32
    uname: String
    aname: String
    n_uname: U32


@message(104)
class TattachU(NamedTuple):
    """size[4] Tattach tag[2] fid[4] afid[4] uname[s] aname[s] n_uname[4]"""

    tag: U16
    fid: U32
    afid: U32
    uname: String
    aname: String
    n_uname: U32


@message(107)
class RerrorU(NamedTuple):
    """size[4] Rerror tag[2] ename[s] errno[4]"""

    tag: U16
    ename: String
    errno: U32


@message(114)
class TcreateU(NamedTuple):
    """size[4] Tcreate tag[2] fid[4] name[s] perm[4] mode[1] extension[s]"""

    tag: U16
    fid: U32
    name: Name
    perm: U32
    mode: U8
    extension: String


# --- 9P2000.L ---


@message(7)
class Rlerror(NamedTuple):
    """size[4] Rlerror tag[2] ecode[4]"""

    tag: U16
    ecode: U32


@message(8)
class Tstatfs(NamedTuple):
    """size[4] Tstatfs tag[2] fid[4]"""

    tag: U16
    fid: U32


@message(9)
class Rstatfs(NamedTuple):
    """size[4] Rstatfs tag[2] type[4] bsize[4] blocks[8] bfree[8] bavail[8]
    files[8] ffree[8] fsid[8] namelen[4]
    """

    tag: U16
    type: U32
    bsize: U32
    blocks: U64
    bfree: U64
    bavail: U64
    files: U64
    ffree: U64
    fsid: U64
    namelen: U32


@message(12)
class Tlopen(NamedTuple):
    """size[4] Tlopen tag[2] fid[4] flags[4]"""

    tag: U16
    fid: U32
    flags: U32


@message(13)
class Rlopen(NamedTuple):
    """size[4] Rlopen tag[2] qid[13] iounit[4]"""

    tag: U16
    qid: QidBytes
    iounit: U32


@message(14)
class Tlcreate(NamedTuple):
    """size[4] Tlcreate tag[2] fid[4] name[s] flags[4] mode[4] gid[4]"""

    tag: U16
    fid: U32
    name: Name
    flags: U32
    mode: U32
    gid: U32


@message(16)
class Tsymlink(NamedTuple):
    """size[4] Tsymlink tag[2] fid[4] name[s] symtgt[s] gid[4]"""

    tag: U16
    fid: U32
    name: Name
    symtgt: String
    gid: U32


@message(18)
class Tmknod(NamedTuple):
    """size[4] Tmknod tag[2] dfid[4] name[s] mode[4] major[4] minor[4] gid[4]"""

    tag: U16
    dfid: U32
    name: Name
    mode: U32
    major: U32
    minor: U32
    gid: U32


@message(20)
class Trename(NamedTuple):
    """size[4] Trename tag[2] fid[4] dfid[4] name[s]"""

    tag: U16
    fid: U32
    dfid: U32
    name: Name


@message(22)
class Treadlink(NamedTuple):
    """size[4] Treadlink tag[2] fid[4]"""

    tag: U16
    fid: U32


@message(24)
class Tgetattr(NamedTuple):
    """size[4] Tgetattr tag[2] fid[4] request_mask[8]"""

    tag: U16
    fid: U32
    request_mask: U64


@message(25)
class Rgetattr(NamedTuple):
    """size[4] Rgetattr tag[2] valid[8] qid[13] mode[4] uid[4] gid[4] nlink[8]
    rdev[8] size[8] blksize[8] blocks[8] atime_sec[8] atime_nsec[8] mtime_sec[8] mtime_nsec[8]
    ctime_sec[8] ctime_nsec[8] btime_sec[8] btime_nsec[8] gen[8] data_version[8]
    """

    tag: U16
    valid: U64
    qid: QidBytes
    mode: U32
    uid: U32
    gid: U32
    nlink: U64
    rdev: U64
    size: U64
    blksize: U64
    blocks: U64
    atime_sec: U64
    atime_nsec: U64
    mtime_sec: U64
    mtime_nsec: U64
    ctime_sec: U64
    ctime_nsec: U64
    btime_sec: U64
    btime_nsec: U64
    gen: U64
    data_version: U64


@message(26)
class Tsetattr(NamedTuple):
    """size[4] Tsetattr tag[2] fid[4] valid[4] mode[4] uid[4] gid[4] size[8]
    atime_sec[8] atime_nsec[8] mtime_sec[8] mtime_nsec[8]
    """

    tag: U16
    fid: U32
    valid: U32
    mode: U32
    uid: U32
    gid: U32
    size: U64
    atime_sec: U64
    atime_nsec: U64
    mtime_sec: U64
    mtime_nsec: U64


@message(30)
class Txattrwalk(NamedTuple):
    """size[4] Txattrwalk tag[2] fid[4] newfid[4] name[s]"""

    tag: U16
    fid: U32
    newfid: U32
    name: String


@message(32)
class Txattrcreate(NamedTuple):
    """size[4] Txattrcreate tag[2] fid[4] name[s] attr_size[8] flags[4]"""

    tag: U16
    fid: U32
    name: String
    attr_size: U64
    flags: U32


@message(40)
class Treaddir(NamedTuple):
    """size[4] Treaddir tag[2] fid[4] offset[8] count[4]"""

    tag: U16
    fid: U32
    offset: U64
    count: U32  # type: ignore[assignment]  # the manual's word, and a method of tuples


@message(41)
class Rreaddir(NamedTuple):
    """size[4] Rreaddir tag[2] count[4] data[count]"""

    tag: U16
    data: Data


@message(50)
class Tfsync(NamedTuple):
    """size[4] Tfsync tag[2] fid[4] datasync[4]"""

    tag: U16
    fid: U32
    datasync: U32


@message(51)
class Rfsync(NamedTuple):
    """size[4] Rfsync tag[2]"""

    tag: U16


@message(52)
class Tlock(NamedTuple):
    """size[4] Tlock tag[2] fid[4] type[1] flags[4] start[8] length[8] proc_id[4] client_id[s]"""

    tag: U16
    fid: U32
    type: U8
    flags: U32
    start: U64
    length: U64
    proc_id: U32
    client_id: String


@message(53)
class Rlock(NamedTuple):
    """size[4] Rlock tag[2] status[1]"""

    tag: U16
    status: U8


@message(54)
class Tgetlock(NamedTuple):
    """size[4] Tgetlock tag[2] fid[4] type[1] start[8] length[8] proc_id[4] client_id[s]"""

    tag: U16
    fid: U32
    type: U8
    start: U64
    length: U64
    proc_id: U32
    client_id: String


@message(55)
class Rgetlock(NamedTuple):
    """size[4] Rgetlock tag[2] type[1] start[8] length[8] proc_id[4] client_id[s]"""

    tag: U16
    type: U8
    start: U64
    length: U64
    proc_id: U32
    client_id: String


@message(70)
class Tlink(NamedTuple):
    """size[4] Tlink tag[2] dfid[4] fid[4] name[s]"""

    tag: U16
    dfid: U32
    fid: U32
    name: Name


@message(72)
class Tmkdir(NamedTuple):
    """size[4] Tmkdir tag[2] dfid[4] name[s] mode[4] gid[4]"""

    tag: U16
    dfid: U32
    name: Name
    mode: U32
    gid: U32


@message(74)
class Trenameat(NamedTuple):
    """size[4] Trenameat tag[2] olddirfid[4] oldname[s] newdirfid[4] newname[s]"""

    tag: U16
    olddirfid: U32
    oldname: Name
    newdirfid: U32
    newname: Name


@message(76)
class Tunlinkat(NamedTuple):
    """size[4] Tunlinkat tag[2] dirfd[4] name[s] flags[4]"""

    tag: U16
    dirfd: U32
    name: Name
    flags: U32

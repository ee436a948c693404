"""Office documents and e-books."""

import io
import re
import xml.etree.ElementTree as ET
import zipfile

from .plain_files import make_html, view_html
from .words import blanks, text
from .xml_files import attributes, comment, xml_text


W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
O = "urn:oasis:names:tc:opendocument:xmlns:"
TYPES = "application/vnd.openxmlformats-officedocument."


def archive(r, members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name, content in members.items():
            how = zipfile.ZIP_STORED if name == "mimetype" or r.random() < 0.2 else zipfile.ZIP_DEFLATED
            z.writestr(zipfile.ZipInfo(name, (2026, 11, r.randrange(1, 29), 3, 4, 6)), content, how)
        z.comment = r.choice([b"", b"a comment"])
    return out.getvalue()


def runs(r, s, write):
    """Divides a text into runs at random."""
    pieces, at = [], 0
    while at < len(s):
        end = min(len(s), at + r.randrange(1, 12))
        pieces.append(write(xml_text(r, s[at:end])))
        at = end
    return "".join(pieces)


def typed(parts):
    return "<Types>" + "".join(f'<Override PartName="/{n}" ContentType="{TYPES}{t}+xml"/>' for n, t in parts.items()) + "</Types>"


def make_docx(r):
    props = ["", "<w:rPr><w:b/></w:rPr>", '<w:rPr><w:lang w:val="en-US"/></w:rPr>', "<w:rPr><w:i/><w:sz w:val='20'/></w:rPr>"]

    def run(t):
        return f"<w:r>{r.choice(props)}<w:t xml:space=\"preserve\">{t}</w:t></w:r>" + r.choice(
            ["", "", "", '<w:bookmarkStart w:id="1"/>', "<w:r><w:tab/></w:r>", "<w:proofErr w:type='spellStart'/>"])

    body = "".join(f"{blanks(r)}<w:p{attributes(r)}><w:pPr><w:jc w:val='left'/></w:pPr>{runs(r, text(r), run)}</w:p>" for _ in range(
        r.randrange(1, 8))) + "<w:tbl><w:tr><w:tc><w:p>" + runs(r, text(r), run) + "</w:p></w:tc></w:tr></w:tbl>"
    return archive(r, {
        "[Content_Types].xml": typed({"word/document.xml": "wordprocessingml.document.main",
                                      "word/settings.xml": "wordprocessingml.settings"}),
        "word/document.xml": f'<?xml version="1.0"?>\n{comment(r)}<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>',
        "word/settings.xml": f'<w:settings xmlns:w="{W}"/>', "word/media/i.png": r.randbytes(100)})


def make_pptx(r):
    def run(t):
        properties = r.choice(["", '<a:rPr b="1"/>', "<a:rPr/>"])
        return f"<a:r>{properties}<a:t>{t}</a:t></a:r>" + r.choice(["", "", "<a:br/>"])

    parts = {"ppt/presentation.xml": "presentationml.presentation.main"}
    members = {"ppt/presentation.xml": f'<p:presentation xmlns:p="{P}"/>'}
    for i in range(r.randrange(1, 4)):
        parts[f"ppt/slides/slide{i}.xml"] = "presentationml.slide"
        body = "".join(f"<a:p>{runs(r, text(r), run)}</a:p>{blanks(r)}" for _ in range(3))
        members[f"ppt/slides/slide{i}.xml"] = f'<p:sld xmlns:p="{P}" xmlns:a="{A}"><p:txBody>{body}</p:txBody></p:sld>'
    return archive(r, {"[Content_Types].xml": typed(parts), **members})


def make_xlsx(r):
    def run(t):
        return f"<r>{r.choice(['', '<rPr><b/></rPr>'])}<t xml:space=\"preserve\">{t}</t></r>"

    items = "".join(f"<si>{r.choice([f'<t>{xml_text(r, text(r))}</t>', runs(r, text(r), run)])}</si>{blanks(r)}" for _ in range(8))
    return archive(r, {
        "[Content_Types].xml": typed({"xl/workbook.xml": "spreadsheetml.sheet.main", "xl/sharedStrings.xml": "spreadsheetml.sharedStrings",
                                      "xl/worksheets/sheet1.xml": "spreadsheetml.worksheet"}),
        "xl/workbook.xml": f'<workbook xmlns="{S}"/>', "xl/sharedStrings.xml": f'<sst xmlns="{S}" count="8">{items}</sst>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{S}"><sheetData><row><c t="s"><v>0</v></c><c><f>A1</f><v>3</v></c></row>'
                                    "</sheetData></worksheet>"})


def open_document(r, kind, body):
    spaces = " ".join(f'xmlns:{n}="{O}{n}:1.0"' for n in ("office", "text", "table", "drawing"))
    return archive(r, {
        "mimetype": "application/vnd.oasis.opendocument." + kind,
        "content.xml": f"<office:document-content {spaces}><office:body>{body}</office:body></office:document-content>",
        "META-INF/manifest.xml": "<manifest/>"})


def open_paragraph(r, tag):
    def run(t):
        return r.choice([t, t, f'<text:span text:style-name="T1">{t}</text:span>', f"{t}<text:s/>", f'<text:bookmark text:name="b"/>{t}'])

    return f"{blanks(r)}<text:{tag}{attributes(r)}>{runs(r, text(r), run)}</text:{tag}>"


def make_odt(r):
    body = "".join(open_paragraph(r, tag) for tag in r.choices(["p", "h"], k=6))
    return open_document(r, "text", f"<office:text>{body}</office:text>")


def make_ods(r):
    cells = "".join(f'<table:table-cell office:value-type="string">{open_paragraph(r, "p")}</table:table-cell>{blanks(r)}'
                    for _ in range(6))
    number = '<table:table-cell office:value-type="float" office:value="3"/>'
    return open_document(r, "spreadsheet", f'<office:spreadsheet><table:table table:name="A"><table:table-row>{cells}{number}'
                                           "</table:table-row></table:table></office:spreadsheet>")


def make_odp(r):
    pages = "".join(f'<drawing:page drawing:name="p{i}"><drawing:frame><drawing:text-box>{open_paragraph(r, "p")}</drawing:text-box>'
                    f"</drawing:frame></drawing:page>{blanks(r)}" for i in range(3))
    return open_document(r, "presentation", f"<office:presentation>{pages}</office:presentation>")


def make_epub(r):
    page = make_html(r).decode().replace("<P", "<p").replace("</P", "</p")
    return archive(r, {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>',
        "b.opf": '<package><manifest><item href="a.xhtml" id="a" media-type="application/xhtml+xml"/></manifest></package>',
        "a.xhtml": page, "style.css": "p { color: red }"})


def view_archive(translated, paragraphs):
    """Members that have no text are whole; of the others the elements around paragraphs, and the texts of paragraphs."""

    def view(data):
        structure, texts = [], []
        with zipfile.ZipFile(io.BytesIO(data)) as z:
            if z.testzip():
                structure.append("damaged")
            structure.append(z.comment)
            for info in z.infolist():
                content = z.read(info)
                structure.append((info.filename, info.date_time, info.compress_type))
                if not re.fullmatch(translated, info.filename):
                    structure.append(content)
                elif paragraphs is None:
                    inner, more = view_html(content)
                    structure.append(inner)
                    texts += more
                else:
                    def walk(e):
                        if e.tag.split("}")[-1] in paragraphs:
                            structure.append((e.tag, sorted(e.attrib.items())))
                            texts.append("".join(t for t in e.itertext()))
                            return
                        structure.append((e.tag, sorted(e.attrib.items()), (e.text or "").strip()))
                        for child in e:
                            walk(child)

                    walk(ET.fromstring(content))
        return structure, texts

    return view
